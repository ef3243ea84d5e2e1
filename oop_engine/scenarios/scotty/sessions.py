"""Sessions of several gaps at once, over players that stop five times a minute (Scotty, figures 9 and 14).

A sensor on each player of a football match gives its place many times a second, and five times a minute
it is silent for 1 to 6 seconds.  A fifth of the tuples is late, by up to 2 seconds.  Asked are sessions of gaps of 1,
3 and 5 seconds: how many tuples, and the greatest speed.

    shared     one operator: a run for each session of the shortest gap, merged as tuples come; sessions of a longer
               gap are rows of these runs
    one each   an operator for each gap, the same runs kept three times
    sorted     the tuples are sorted first, as an engine in order has to: it holds those of the disorder

In Scotty a late tuple merges two slices, and no tuple is looked at again.  Ours is the same idea without slices.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Operator, Page, Schema
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.page import concat
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Parameter, Scenario, Sweep, Timed, Values, Variant
from oop_engine.operators.aggregates import Count, Max
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.policies import BoundedDisorder
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Session
from oop_engine.scenarios.measured import cpu_s
from oop_engine.scenarios.scotty import SOURCE
from oop_engine.scenarios.truth import cut_out

__all__ = ["SCENARIO", "match"]

SCHEMA = Schema({"ts": pa.int64(), "player": pa.int64(), "speed": pa.int32()}, "ts", "ms")
LATE, LATE_BY = 0.2, 2000  # share of the tuples, and ms
STOPS, SHORTEST, LONGEST = 5, 1000, 6000  # silences a minute of a player, and ms of each
MINUTE, PAGE, EVERY = 60_000, 4096, 1000
UNMERGED = (
    LATE_BY + EVERY
) // 1000  # runs of a player in the disorder and a granule, of the shortest gap, 1 s
ASKED = {"n": Count(), "fastest": Max("speed")}
SHARED, EACH, SORTED = "shared", "one each", "sorted"
MEASURED = 100_000  # tuples from which on CPU times mean something
ENOUGH = 6000  # tuples from which on runs are merged before the trace ends, and many wait to be sorted
Integers = NDArray[np.int64]


def gaps_of(values: Values) -> list[int]:
    """Return the gaps in seconds.  Raises ``UsageError`` if the text has other things than numbers."""
    try:
        return [int(text) for text in values["gaps"].split()]
    except ValueError:
        msg = f"sessions: gaps must be whole seconds, such as '1 3 5'; got {values['gaps']!r}"
        raise UsageError(msg) from None


def match(values: Values) -> pa.Table:
    """Return the tuples as they arrive: ``ts``, ``player``, ``speed``, ``arrival``."""
    draw = np.random.default_rng(values["seed"])
    found = [_player(player, values, draw) for player in range(values["players"])]
    ts, player = (np.concatenate(columns) for columns in zip(*found, strict=True))
    late = np.where(draw.random(ts.size) < LATE, draw.integers(0, LATE_BY + 1, ts.size), 0)
    order = np.argsort(ts + late, kind="stable")
    speed = draw.integers(0, 10_000, ts.size).astype(np.int32)
    return pa.table(
        {"ts": ts[order], "player": player[order], "speed": speed[order], "arrival": (ts + late)[order]}
    )


def _player(player: int, values: Values, draw: np.random.Generator) -> tuple[Integers, Integers]:
    length = round(values["minutes"] * MINUTE)
    ts = np.sort(draw.integers(0, length, int(length * values["rate"] / 1000)))
    stops = np.sort(draw.integers(0, length, max(round(values["minutes"] * STOPS), 1)))
    ends = stops + draw.integers(SHORTEST, LONGEST, stops.size)
    last = np.searchsorted(stops, ts, "right") - 1
    silent = (last >= 0) & (ts < np.maximum.accumulate(ends)[last])
    return ts[~silent], np.full(int((~silent).sum()), player)


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the tuples in pages."""
    found = match(values)
    columns = {name: found.column(name).to_numpy() for name in SCHEMA.names}
    whole = Page.of(SCHEMA, columns, arrival=found.column("arrival").to_numpy())
    return {"players": [*_parts(whole)]}


def query(gaps: list[int]) -> WindowAggregate:
    """Return the sessions of all gaps in one operator."""
    return WindowAggregate({f"{gap} s": Session(f"{gap} s") for gap in gaps}, ASKED, by=("player",))


def variants(values: Values) -> list[Variant]:
    """Return the plans."""
    gaps = gaps_of(values)
    plans = [
        Variant(SORTED, "in", in_order(_plan(SORTED, [gaps]))),
        Variant(SHARED, "out", _plan(SHARED, [gaps])),
    ]
    each = [Variant(EACH, "out", _plan(EACH, [[gap] for gap in gaps]))] if len(gaps) > 1 else []
    return plans + each


def _plan(name: str, queries: list[list[int]]) -> Graph:
    graph = Graph(name)
    tuples = graph.add(
        "progress", Punctuate(BoundedDisorder(LATE_BY), granularity=EVERY), graph.source("players", SCHEMA)
    )
    each = [graph.add(f"sessions{i}", query(gaps), tuples) for i, gaps in enumerate(queries)]
    graph.sink("results", graph.add("all", Meld(len(each)), *each) if len(each) > 1 else each[0])
    return graph


def truth(values: Values) -> pa.Table:
    """Return the answer from the definition: a player's tuples, cut where two are further apart than the gap."""
    found = match(values).sort_by([("player", "ascending"), ("ts", "ascending")])
    return pa.concat_tables([_sessions(found, gap) for gap in gaps_of(values)])


def _sessions(found: pa.Table, gap: int) -> pa.Table:
    ts, player = found.column("ts").to_numpy(), found.column("player").to_numpy()
    starts = _cuts(ts, player, gap)
    stops = np.r_[starts[1:], ts.size]
    asked = cut_out(found, starts, stops, {"n": ("ts", np.size), "fastest": ("speed", np.max)})
    of = {
        "player": player[starts],
        "window": np.full(starts.size, f"{gap} s"),
        "window_start": ts[starts],
        "window_end": ts[stops - 1] + 1000 * gap,
    }
    return pa.table({**of, **{name: asked.column(name) for name in asked.column_names}})


def _cuts(ts: Integers, player: Integers, gap: int) -> Integers:
    """Return where a session of a player begins, of tuples sorted by player and time."""
    return np.flatnonzero(np.r_[True, (np.diff(ts) > 1000 * gap) | (np.diff(player) != 0)])


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims on state, and on time where there is enough to measure."""
    found = [_no_tuple(runs), _runs_held(runs)]
    most = max(runs, key=lambda run: len(gaps_of(run.parameters)))
    if most.tuples >= MEASURED and len(gaps_of(most.parameters)) > 1:
        found += [_shared_time(most.parameters), _late_time(most.parameters)]
    return found


def _no_tuple(runs: list[Run]) -> Claim:
    held = {f"{run.variant}, gaps {run.parameters['gaps']}": run.peak_tuples for run in runs}
    return Claim(
        "out of order no tuple is held, though a fifth is late; sorted, those of the disorder are",
        all((run.peak_tuples == 0) == (run.order == "out") for run in runs),
        held,
    )


def _runs_held(runs: list[Run]) -> Claim:
    by_gaps, sorted_ = (
        {run.parameters["gaps"]: run for run in runs if run.variant == name} for name in (SHARED, SORTED)
    )
    open_ = {gaps: most_open(run.parameters) for gaps, run in by_gaps.items()}
    return Claim(
        "partial aggregates held are those of runs of the shortest gap in open sessions, and at most one a player for "
        "each second of the disorder and of a granule, which are not merged with these yet; a tenth of the tuples that "
        "are sorted, or fewer",
        all(
            open_[gaps] <= run.peak_partials <= open_[gaps] + UNMERGED * run.parameters["players"]
            and 10 * run.peak_partials <= sorted_[gaps].peak_tuples
            for gaps, run in by_gaps.items()
        )
        if runs[0].tuples >= ENOUGH
        else None,
        {
            gaps: {"held": run.peak_partials, "open by definition": open_[gaps]}
            for gaps, run in by_gaps.items()
        },
    )


def most_open(values: Values) -> int:
    """Return how many runs of the shortest gap there are at one time, at most, by definition and without the engine.

    A run is there from its first tuple until the bound is behind the end of its session of the longest gap.
    """
    gaps = gaps_of(values)
    found = match(values).sort_by([("player", "ascending"), ("ts", "ascending")])
    ts, player = found.column("ts").to_numpy(), found.column("player").to_numpy()
    runs, sessions = _cuts(ts, player, min(gaps)), _cuts(ts, player, max(gaps))
    lasts = ts[np.r_[sessions[1:], ts.size] - 1] + 1000 * max(gaps)
    gone = lasts[np.searchsorted(sessions, runs, "right") - 1] + LATE_BY + EVERY
    moments = np.concatenate([ts[runs], gone])
    change = np.repeat([1, -1], runs.size)[np.argsort(moments, kind="stable")]
    return int(np.cumsum(change).max())


def _shared_time(values: Values) -> Claim:
    gaps = gaps_of(values)
    ways = {"one gap": [gaps[:1]], "shared": [gaps], "one each": [[gap] for gap in gaps]}
    made = {name: partial(_opened, way) for name, way in ways.items()}
    spent = cpu_s(made, _punctuated(feeds(values)["players"]), turns=7)
    return Timed(
        "three gaps in one operator take less than 1.5 times as long as one gap, and at most 0.75 of an operator each",
        spent["shared"] < 1.5 * spent["one gap"] and spent["shared"] < 0.75 * spent["one each"],
        {f"{name}, CPU s": round(seconds, 3) for name, seconds in spent.items()},
    )


def _late_time(values: Values) -> Claim:
    """Figure 14 has sessions with a fifth of the tuples late: here beside the same ones in order."""
    late = feeds(values)["players"]
    whole = concat(SCHEMA, [page.without_arrival() for page in late if isinstance(page, Page)])
    ordered = whole.take(np.argsort(whole.times, kind="stable"))
    pages: list[Message] = [Page(SCHEMA, part.batch, part.times) for part in _parts(ordered)]
    made = {"sessions": partial(_opened, [gaps_of(values)])}
    spent = {
        name: cpu_s(made, _punctuated(of), turns=5)["sessions"]
        for name, of in {"late": late, "in order": pages}.items()
    }
    return Timed(
        "with a fifth of the tuples late sessions take at most twice as long as in order",
        spent["late"] <= 2 * spent["in order"],
        {f"{name}, CPU s": round(seconds, 3) for name, seconds in spent.items()},
    )


def _parts(page: Page) -> list[Page]:
    return [page.slice(at, min(at + PAGE, len(page))) for at in range(0, len(page), PAGE)]


def _punctuated(pages: Iterable[Message]) -> list[Message]:
    """Return pages and the punctuation of the edge."""
    edge = Punctuate(BoundedDisorder(LATE_BY), granularity=EVERY).opened(SCHEMA)
    return [m for page in pages if isinstance(page, Page) for _, m in edge.on_page(0, page)]


def _opened(queries: list[list[int]]) -> list[Operator]:
    return [query(gaps).opened(SCHEMA) for gaps in queries]


SCENARIO = Scenario(
    name="sessions",
    source=SOURCE,
    title="Sessions of players by gaps of 1, 3 and 5 s, a fifth of the tuples late",
    about=__doc__,
    parameters={
        "gaps": Parameter("1 3 5", "seconds without a tuple that end a session, for each definition"),
        "players": Parameter(16, "how many", least=1),
        "rate": Parameter(50.0, "tuples a second of each player", least=1),
        "minutes": Parameter(4.0, "length of the match", least=0.5),
        "seed": Parameter(1, "of the random numbers", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("player", "window", "window_end"),
    claims=claims,
    sweep=Sweep("gaps", ("1", "1 3", "1 3 5")),
)
