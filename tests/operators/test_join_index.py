"""The young run of a join's side, which small pages extend in few calls: the same run, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import Graph, Page, Schema, State, replay
from oop_engine.operators import Band, BoundedDisorder, OAJoin, Punctuate
from oop_engine.operators.joining.run import SortedRun, merged

Tuples = list[tuple[int, int]]
TUPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), min_size=1, max_size=30)
S = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.string()}, "ts", "s")


def living(tuples: Tuples, spare: int = 0) -> tuple[Any, ...]:
    """Return tuples (code, time) with a batch of theirs, at its end so many rows that nobody asks for."""
    codes, times = np.array(tuples, np.int64).T.copy()
    batch = pa.record_batch({"v": pa.array([None, *map(str, range(len(tuples) + spare - 1))], pa.string())})
    return batch, np.arange(len(tuples), dtype=np.int32), codes, times, None


def arrays(run: SortedRun) -> dict[str, Any]:
    saved = run.save()
    return {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in saved.items()}


@given(TUPLES, TUPLES, st.integers(0, 40), st.integers(-10, 9), st.sets(st.integers(0, 29)))
def test_a_run_that_is_extended_is_the_one_that_merging_makes(
    some: Tuples, more: Tuples, spare: int, keep_from: int, dead: set[int]
) -> None:
    run = SortedRun.of(*living(some))
    run.bury_before(keep_from)
    run.bury(np.array([entry for entry in dead if entry < len(some)], np.int32))
    codes, times = (part.copy() for part in living(more, spare)[2:4])
    for part in (codes, times):
        part.flags.writeable = False
    batch, rows, *_ = living(more, spare)
    one, other = run.extended(batch, rows, codes, times, None), merged([run.living(), living(more, spare)])
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
    graph.sink("out", graph.add("join", OAJoin([("k", "k")], Band(6, 12), kind=kind), *ends))
    trace = Trace()
    outcome = replay(graph, feeds, watch=trace)
    rows = zip(map(repr, outcome.results["out"].to_pylist()), outcome.emitted["out"].tolist(), strict=True)
    return trace, sorted(rows)


@pytest.mark.parametrize("kind", ["inner", "left", "semi"])
def test_states_and_delays_of_a_replay_in_virtual_time_do_not_follow_from_how_runs_are_made(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick, rows = of_join(kind)
    monkeypatch.setattr(SortedRun, "extended", lambda run, *more: merged([run.living(), more]))
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
        (9392, 194),
    )
