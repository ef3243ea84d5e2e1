"""Many windows at once over one stream: shared slices, WID and buffering (Scotty, figures 13, 14, 17 and 21).

Asked are a count and a sum of tumbling windows of 1 to 20 seconds, 1 to 1000 definitions at a time.  ``100`` are
100 definitions, ``100 session`` has a session beside them, ``100 late 50`` has half of the tuples late, by up to
2 seconds, and ``100 count`` has windows of numbers of tuples instead, in order of time.

    slicing    one operator: a tuple goes into one slice, and windows are put together when they close
    WID        an operator for each definition: a tuple goes into a window of each
    buffering  an operator for each definition, in order: it keeps the tuples, and looks at them when a window closes

Lengths are whole seconds, so slices of one second serve all.  (Lengths without a common divisor would share less.)  The
three plans are run up to 10 definitions, and slicing alone beyond; CPU times are those of the operators alone.
As in the paper the tuples cost slicing the same for any number of windows, and WID and buffering as much as there are
windows; only results cost more the more there are.  So of 100 definitions WID takes 70 to 116 times as long, for an
operator of WID takes about as long as slicing of one definition, and slicing of 100 up to 1.5 times as long as that; of
1000 it takes 600 times as long and more.  Disorder makes little difference.  Not as there: windows of counts
need no tuple to be shifted from slice to slice, for they are folded once a bound has passed their tuples.  So they cost
no more when tuples are late.  But our definitions of counts share the tuples that no bound has passed, and no slices:
10 of them take twice as long as 10 operators of time, and 20 times as long as 10 definitions of time in one operator,
for each ranks and folds the tuples for itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Operator, Page, Schema
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Timed, Values, Variant
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Session, Tumbling, TupleBased, Windows
from oop_engine.scenarios.measured import TURNS, cpu_s
from oop_engine.scenarios.scotty import SOURCE

__all__ = ["SCENARIO", "case_of"]

SCHEMA = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "ms")
STEP, LATE_BY, EVERY = 1, 2000, 5000  # ms between tuples, of lateness at most, and of granularity
PAGE = 8192
ASKED = {"n": Count(), "total": Sum("v")}
SLICING, WID, BUFFERING = "slicing", "WID", "buffering"
FEW = 10  # definitions that all plans are run with
Integers = NDArray[np.int64]
SOME = 10_000  # tuples that WID is given of 1000 definitions, 2 s of work
MEASURED = 30_000  # tuples from which on CPU times mean something


@dataclass(frozen=True)
class Queries:
    """A point of the sweep: so many definitions, their kind, and the percent of tuples that are late."""

    definitions: int
    kind: str = ""
    late: int = 5

    def windows(self) -> dict[str, Windows]:
        """Return the definitions: 1, 2 ... 20 s long, and again."""
        lengths = {f"{i}": (1 + i % 20) * 1000 for i in range(self.definitions)}
        if self.kind == "count":
            return {name: TupleBased(length, length, order="time") for name, length in lengths.items()}
        sessions: dict[str, Windows] = {"session": Session("1 s")} if self.kind == "session" else {}
        return {name: Tumbling(length) for name, length in lengths.items()} | sessions


def case_of(values: Values) -> Queries:
    """Return the point of the sweep.  Raises ``UsageError`` if the text cannot be read."""
    if not (
        found := re.fullmatch(
            r"([1-9]\d{0,3})(?: (session|count)| late (\d\d?|100))?", values["case"].strip()
        )
    ):
        msg = (
            "stream_slicing: case must read like '100', '100 session', '100 count' or '100 late 50'; "
            f"got {values['case']!r}"
        )
        raise UsageError(msg)
    return Queries(int(found[1]), found[2] or "", int(found[3] or 5))


def given(values: Values) -> pa.Table:
    """Return the tuples as they arrive; a silence of 3 s in each 20 s lets sessions end."""
    draw = np.random.default_rng(values["seed"])
    number = values["tuples"]
    ts = np.arange(number) * STEP + np.arange(number) // 17_000 * 3000
    late = np.where(draw.random(number) < case_of(values).late / 100, draw.integers(0, LATE_BY, number), 0)
    order = np.argsort(ts + late, kind="stable")
    return pa.table({"ts": ts[order], "v": draw.integers(0, 1000, (number,)), "arrival": (ts + late)[order]})


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the tuples in pages."""
    found = given(values)
    columns = {name: found.column(name).to_numpy() for name in SCHEMA.names}
    whole = Page.of(SCHEMA, columns, arrival=found.column("arrival").to_numpy())
    return {"tuples": [whole.slice(at, min(at + PAGE, len(whole))) for at in range(0, len(whole), PAGE)]}


def variants(values: Values) -> list[Variant]:
    """Return the plans: all of them for few definitions of time."""
    case = case_of(values)
    slicing = Variant(SLICING, "out", _plan([WindowAggregate(case.windows(), ASKED)]))
    if case.definitions > FEW or case.kind == "count":
        return [slicing]
    each = _plan([WindowAggregate({name: one}, ASKED) for name, one in case.windows().items()])
    return [Variant(BUFFERING, "in", in_order(each)), slicing, Variant(WID, "out", _plan(_each(case)))]


def _each(case: Queries) -> list[WindowAggregate]:
    return [
        WindowAggregate({name: one}, ASKED, strategy="windows" if isinstance(one, Tumbling) else "auto")
        for name, one in case.windows().items()
    ]


def _plan(operators: list[WindowAggregate]) -> Graph:
    graph = Graph(SLICING)
    progress = Punctuate(BoundedDisorder(LATE_BY), granularity=EVERY)
    tuples = graph.add("progress", progress, graph.source("tuples", SCHEMA))
    each = [graph.add(f"windows{i}", operator, tuples) for i, operator in enumerate(operators)]
    graph.sink("results", graph.add("all", Meld(len(each)), *each) if len(each) > 1 else each[0])
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: sums of the sorted tuples up to both ends of a window, subtracted."""
    found = given(values).sort_by("ts")
    ts, until = found.column("ts").to_numpy(), np.r_[0, np.cumsum(found.column("v").to_numpy())]
    tables = []
    for name, one in case_of(values).windows().items():
        extents = _cut(one, ts)
        low, high = extents.pop("low"), extents.pop("high")
        rows = {
            "window": np.full(low.size, name),
            **extents,
            "n": high - low,
            "total": until[high] - until[low],
        }
        tables.append(pa.table(rows).filter(high > low))
    return pa.concat_tables(tables)


def _cut(window: Windows, ts: Integers) -> dict[str, Integers]:
    """Return the windows of the sorted times, and the places of their first tuple and behind their last."""
    if isinstance(window, Session):
        low = np.flatnonzero(np.r_[True, np.diff(ts) > 1000])
        high = np.r_[low[1:], ts.size]
        return {"window_start": ts[low], "window_end": ts[high - 1] + 1000, "low": low, "high": high}
    assert isinstance(window, Tumbling | TupleBased)
    assert isinstance(window.range, int)
    if isinstance(window, Tumbling):
        starts = np.arange(0, int(ts[-1]) + 1, window.range)
        low, high = (np.searchsorted(ts, edge) for edge in (starts, starts + window.range))
        return {"window_start": starts, "window_end": starts + window.range, "low": low, "high": high}
    low = np.arange(0, ts.size, window.range)
    high = np.minimum(low + window.range, ts.size)
    rows = {"window_start": low, "window_end": low + window.range}
    return {**rows, "time_start": ts[low], "time_end": ts[high - 1] + 1, "low": low, "high": high}


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on state, and on CPU times where traces are long enough."""
    found = [_slices_held(runs)]
    points = {run.parameters["case"]: run.parameters for run in runs}
    if runs[0].tuples >= MEASURED:
        found += [claim(points) for of, claim in _TIMED.items() if set(of) <= set(points)]
    return found


def _slices_held(runs: list[Run]) -> Claim:
    held = {
        run.parameters["case"]: run.peak_partials for run in runs if run.variant == SLICING and _timed(run)
    }
    most = {
        case: (min(_definitions(case), 20) * 1000 + LATE_BY + EVERY) // 1000 + _sessions(case)
        for case in held
    }
    return Claim(
        "slices kept are those of the longest window, of the disorder and of a granule, and no tuple; as many at any "
        "number of definitions from 20 on",
        all(kept <= most[case] for case, kept in held.items())
        and all(run.peak_tuples == 0 for run in runs if run.variant != BUFFERING and _timed(run)),
        held,
    )


def _definitions(case: str) -> int:
    return case_of({"case": case}).definitions


def _sessions(case: str) -> int:
    """Return how many runs of a session there may be: one, and those of the seconds of the disorder and a granule."""
    return 1 + (LATE_BY + EVERY) // 1000 if case_of({"case": case}).kind == "session" else 0


def _timed(run: Run) -> bool:
    return case_of(run.parameters).kind != "count"


def spent(
    values: Values, plans: dict[str, Callable[[Queries], list[WindowAggregate]]], turns: int = TURNS
) -> dict[str, float]:
    """Return the CPU seconds of plans without the edge, over the tuples as they arrive."""
    edge = Punctuate(BoundedDisorder(LATE_BY), granularity=EVERY).opened(SCHEMA)
    messages = [
        m for page in feeds(values)["tuples"] if isinstance(page, Page) for _, m in edge.on_page(0, page)
    ]
    case = case_of(values)
    return cpu_s({name: partial(_opened, plan, case) for name, plan in plans.items()}, messages, turns)


def _opened(plan: Callable[[Queries], list[WindowAggregate]], case: Queries) -> list[Operator]:
    return [operator.opened(SCHEMA) for operator in plan(case)]


def _one(case: Queries) -> list[WindowAggregate]:
    return [WindowAggregate(case.windows(), ASKED)]


def _by_number(points: dict[str, Values]) -> Claim:
    one, many = (spent(points[case], {SLICING: _one})[SLICING] for case in ("1", "1000"))
    return Timed(
        "1000 definitions in one operator take less than 4 times as long as one, results included",
        many < 4 * one,
        {"1": round(one, 4), "1000": round(many, 4), "ratio": round(many / one, 1)},
    )


def _against_wid(points: dict[str, Values]) -> Claim:
    found = spent(points["100"], {SLICING: _one, WID: _each})
    return Timed(
        "with 100 definitions WID takes at least 50 times as long as slicing",
        found[WID] > 50 * found[SLICING],
        {**{name: round(s, 3) for name, s in found.items()}, "ratio": round(found[WID] / found[SLICING], 1)},
    )


def _against_wid_of_many(points: dict[str, Values]) -> Claim:
    values = {**points["1000"], "tuples": SOME}
    found = spent(values, {SLICING: _one}) | spent(values, {WID: _each}, turns=1)
    return Timed(
        f"with 1000 definitions WID takes at least 100 times as long as slicing, over {SOME} tuples",
        found[WID] > 100 * found[SLICING],
        {**{name: round(s, 3) for name, s in found.items()}, "ratio": round(found[WID] / found[SLICING])},
    )


def _by_disorder(points: dict[str, Values]) -> Claim:
    some, half = (spent(points[case], {SLICING: _one})[SLICING] for case in ("100", "100 late 50"))
    return Timed(
        "with half of the tuples late slicing takes less than 1.5 times as long as with a twentieth",
        half < 1.5 * some,
        {"late 5 %": round(some, 4), "late 50 %": round(half, 4), "ratio": round(half / some, 2)},
    )


def _with_session(points: dict[str, Values]) -> Claim:
    """Figure 14: a session beside them, over tuples a twentieth of which are late."""
    alone, beside = (spent(points[case], {SLICING: _one})[SLICING] for case in ("100", "100 session"))
    [session] = spent({**points["100 session"], "case": "1 session"}, {"one": _session}).values()
    return Timed(
        "a session beside 100 definitions takes as long as 100 definitions and a session by themselves, to a half",
        0.5 * (alone + session) <= beside <= 1.5 * (alone + session),
        {"100": round(alone, 4), "session": round(session, 4), "both": round(beside, 4)},
    )


def _session(case: Queries) -> list[WindowAggregate]:
    return [
        WindowAggregate({name: one}, ASKED)
        for name, one in case.windows().items()
        if isinstance(one, Session)
    ]


def _by_count(points: dict[str, Values]) -> Claim:
    counted = spent(points["10 count"], {SLICING: _one})[SLICING]
    timed = spent(points["10"], {WID: _each})[WID]
    return Timed(
        "10 definitions of counts in one operator take at most 3 times as long as 10 operators of time",
        counted < 3 * timed,
        {
            "counts": round(counted, 3),
            "time, an operator each": round(timed, 3),
            "ratio": round(counted / timed, 1),
        },
    )


_TIMED: dict[tuple[str, ...], Callable[[dict[str, Values]], Claim]] = {
    ("1", "1000"): _by_number,
    ("100",): _against_wid,
    ("1000",): _against_wid_of_many,
    ("100", "100 late 50"): _by_disorder,
    ("100", "100 session"): _with_session,
    ("10", "10 count"): _by_count,
}


SCENARIO = Scenario(
    name="stream_slicing",
    source=SOURCE,
    title="1 to 1000 definitions of windows at once: shared slices, WID and buffering",
    about=__doc__,
    parameters={
        "case": Parameter("10", "how many definitions, and a session, counts, or the percent of late tuples"),
        "tuples": Parameter(200_000, "length of the trace, one in a millisecond", least=1000),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window", "window_end"),
    claims=claims,
    sweep=Sweep("case", ("1", "10", "100", "1000", "100 session", "100 late 50", "10 count")),
)
