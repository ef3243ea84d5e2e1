"""The tuples of a join's side: the young run, which small pages extend in few calls, and runs by stretches of time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, Graph, GroupWise, Page, Schema, replay
from oop_engine.core.snapshot import pack, unpack
from oop_engine.extend import State
from oop_engine.operators import Band, BoundedDisorder, OAJoin, Punctuate
from oop_engine.operators.joining.index import JoinIndex
from oop_engine.operators.joining.run import SortedRun
from oop_engine.operators.joining.taking import joined
from oop_engine.testing import Driver, multiset

Tuples = list[tuple[int, int]]
TUPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), min_size=1, max_size=30)
SPREAD = st.lists(st.tuples(st.integers(-(2**40), 2**40), st.integers(-9, 9)), min_size=1, max_size=30)
S = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.string()}, "ts", "s")


def living(tuples: Tuples, spare: int = 0) -> tuple[Any, ...]:
    """Return tuples (code, time) with a batch of theirs, at its end so many rows that nobody asks for."""
    codes, times = np.array(tuples, np.int64).T.copy()
    batch = pa.record_batch({"v": pa.array([None, *map(str, range(len(tuples) + spare - 1))], pa.string())})
    return batch, np.arange(len(tuples), dtype=np.int32), codes, times, None


def alive(run: SortedRun) -> list[tuple[Any, ...]]:
    """Return the tuples that can still match something, with their codes and times, and whether they have."""
    batch, rows, codes, times, matched = run.living()
    marks = [None] * len(rows) if matched is None else matched.tolist()
    values = batch.column("v").take(pa.array(rows)).to_pylist()
    return sorted(zip(codes.tolist(), times.tolist(), map(str, values), marks, strict=True))


def arrays(run: SortedRun) -> dict[str, Any]:
    saved = run.save()
    return {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in saved.items()}


@given(TUPLES, TUPLES, st.integers(0, 40), st.integers(-10, 9), st.sets(st.integers(0, 29)))
def test_a_run_that_is_extended_is_the_one_that_merging_makes(
    some: Tuples, more: Tuples, spare: int, keep_from: int, dead: set[int]
) -> None:
    run = SortedRun.young(*living(some))
    run.bury_before(keep_from)
    run.bury(np.array([entry for entry in dead if entry < len(some)], np.int32))
    codes, times = (part.copy() for part in living(more, spare)[2:4])
    for part in (codes, times):
        part.flags.writeable = False
    batch, rows, *_ = living(more, spare)
    one, other = (
        run.extended(batch, rows, codes, times, None),
        SortedRun(*joined([run.living(), living(more, spare)]), young=True),
    )
    assert arrays(one) == arrays(other)
    assert (one.nbytes, one.groups, one.live, one.first) == (
        other.nbytes,
        other.groups,
        other.live,
        other.first,
    )
    probes = np.arange(6), np.full(6, -5), np.full(6, 5)
    for found, expected in zip(one.matches(*probes, 64), other.matches(*probes, 64), strict=True):
        assert [part.tolist() for part in found] == [part.tolist() for part in expected]


class Trace:
    """Keeps the states that a replay goes through."""

    def __init__(self) -> None:
        self.states: list[tuple[int, State]] = []

    def passed(self, *_: Any) -> None:
        """Edges are not looked at."""

    def kept(self, now: int, state: State) -> None:
        """Learn the state of the whole graph after an event."""
        self.states.append((now, state))


def of_join(kind: str) -> tuple[Trace, list[tuple[Any, ...]]]:
    """Replay a join whose pages are cut at each second; return its states, and its rows with their moments."""
    graph, feeds, random = Graph(kind), {}, np.random.default_rng(5)
    for name in ("left", "right"):
        arrival = np.sort(random.integers(0, 300, 1500))
        columns = {"ts": arrival - random.integers(0, 9, 1500), "k": random.integers(0, 30, 1500)}
        feeds[name] = [Page.of(S, columns | {"v": [f"{name} {i}" for i in range(1500)]}, arrival=arrival)]
    ends = [
        graph.add(f"{name}-edge", Punctuate(BoundedDisorder(8), 1), graph.source(name, S)) for name in feeds
    ]
    graph.sink("out", graph.add("join", OAJoin([("k", "k")], Band(6, 12), how=kind), *ends))
    trace = Trace()
    outcome = replay(graph, feeds, watch=trace)
    rows = zip(map(repr, outcome.results["out"].to_pylist()), outcome.emitted["out"].tolist(), strict=True)
    return trace, sorted(rows)


@pytest.mark.parametrize("kind", ["inner", "left", "semi"])
def test_states_and_delays_of_a_replay_in_virtual_time_do_not_follow_from_how_runs_are_made(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, rows = of_join(kind)
    monkeypatch.setattr(
        SortedRun, "extended", lambda run, *more: SortedRun(*joined([run.living(), more]), young=True)
    )
    slow, expected = of_join(kind)
    assert quick.states == slow.states
    assert rows == expected
    assert rows


def test_states_and_delays_of_a_replay_in_virtual_time_are_as_they_were_measured() -> None:
    trace, rows = of_join("inner")
    peak = max(state.nbytes for _, state in trace.states), max(state.tuples for _, state in trace.states)
    assert (len(trace.states), len(rows), sum(now for _, now in rows), peak) == (
        1646,
        4675,
        709_555,
        (8513, 194),
    )


@given(st.data(), st.sampled_from([1, 7, 40, 2**62]), st.sampled_from([0, 2**62, -(2**62)]))
@settings(max_examples=40)
def test_an_index_of_many_runs_finds_the_tuples_of_the_definition(
    data: st.DataObject, width: int, since: int
) -> None:
    """Runs of a few tuples become others, by stretches of time, while tuples come in any order and are purged."""
    index, held = JoinIndex(width), list[tuple[int, int]]()
    bound = -(2**63)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oop_engine.operators.joining.index._YOUNG", 3)
        for _ in range(data.draw(st.integers(1, 25))):
            middle = data.draw(st.integers(-200, 200))
            drawn = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 20)), max_size=9))
            added = [(c, t) for c, t in ((c, since + middle + t) for c, t in drawn) if t >= bound]
            if added:
                batch, rows, codes, times, _ = living(added)
                index.add(batch, rows, codes, times)
            held += added
            if data.draw(st.integers(0, 3)) == 0:
                bound = max(bound, since + data.draw(st.integers(-200, 200)))
                index.purge(bound)
                held = [(c, t) for c, t in held if t >= bound]
    _, _, entries, codes, times = index.living()
    assert index.tuples == len(held) == entries.size
    assert sorted(zip(codes.tolist(), times.tolist(), strict=True)) == sorted(held)
    wide = np.array([since - 60, since, since - 300])
    low, high = np.maximum(wide, bound), np.maximum(wide + 90, bound)  # purged tuples are out of reach
    found = [
        (int(probe), *run.keys(np.array([entry], np.int32))[0].tolist())
        for probes, run, of_run in index.matches(np.arange(3), low, high)
        for probe, entry in zip(probes, of_run, strict=True)
    ]
    assert sorted(found) == sorted((c, c, t) for c, t in held if low[c] <= t <= high[c])


@pytest.mark.parametrize(("width", "dead"), [(10, range(200)), (2**40, range(2500, 3500))])
def test_tuples_that_die_together_lie_together(width: int, dead: range) -> None:
    """Where a band is short a bound kills whole runs; with one that spans everything, parts of all."""
    index = JoinIndex(width)
    for part in np.array_split(np.random.default_rng(3).permutation(20_000), 20):
        batch, rows, codes, times, _ = living([(int(n) % 9, int(n)) for n in part])
        index.add(batch, rows, codes, times)
    index.purge(3000)
    runs, *_ = index.living()
    assert index.tuples == 17_000
    assert sum(run.batch.num_rows for run in runs) - index.tuples in dead


@given(
    TUPLES,
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(-10, 9), max_size=2),
    st.sets(st.integers(0, 29)),
)
def test_a_run_comes_back_with_the_tuples_that_are_alive(
    tuples: Tuples, young: bool, marks: bool, bounds: list[int], dead: set[int]
) -> None:
    batch, rows, codes, times, _ = living(tuples)
    matched = codes % 2 == 0 if marks else None
    run = (SortedRun.young if young else SortedRun)(batch, rows, codes, times, matched)
    if dead:
        run.bury(np.array([entry for entry in dead if entry < len(tuples)], np.int32))
    for bound in sorted(bounds):
        run.between(bound - 3, bound)  # for which it is sorted by time
        run.bury_before(bound)
    if not (run.live and run.alive().size):
        return
    saved = unpack("run", pack("run", {"run": run.save()})).part("run")
    back = SortedRun.loaded(saved, batch.schema, marks=marks)
    assert (alive(back), back.live, back.first) == (alive(run), run.live, run.first)


def test_a_join_whose_tuples_died_by_their_keys_loses_none_behind_a_snapshot() -> None:
    rows = [{"ts": at, "k": at % 5, "v": "abc"[at % 3]} for at in range(40)]
    gone = {"k": [0, 1], "v": ["a", "b"]}

    def page(some: list[dict[str, Any]]) -> Page:
        return Page.of(S, {name: [row[name] for row in some] for name in S.names})

    def pairs(*, moves: bool) -> Counter[tuple[Any, ...]]:
        join = Driver(OAJoin([("k", "k"), ("v", "v")], Band(60, 60)), S, S)
        join.feed(0, page(rows))
        join.feed(1, GroupWise.of(gone, [FOREVER] * 2))
        if moves:
            join.move()
        join.feed(0, page([{"ts": 3, "k": 9, "v": "z"}]))
        join.feed(1, page([row for row in rows if (row["k"], row["v"]) not in {(0, "a"), (1, "b")}]))
        return multiset(join.rows())

    assert pairs(moves=True) == pairs(moves=False)
