"""A recording is what happened: the tuples, which of them were late, the promises, the state, at their moments."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from oop_engine import Graph, GroupWise, Linear, Page, Schema
from oop_engine.extend import Message
from oop_engine.lab.recording import Recording
from oop_engine.operators import (
    BoundedDisorder,
    Count,
    Filter,
    Late,
    Meld,
    Punctuate,
    Tumbling,
    Upstream,
    WindowAggregate,
    WithColumns,
)
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.runners.outcome import Outcome
from oop_engine.runners.replay import replay

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
TS = [1, 12, 25, 3, 11, 25, 40, 12, 60]
ARRIVALS = [1, 12, 25, 26, 27, 28, 40, 41, 60]
ONE = [Page.of(SCHEMA, {"ts": TS, "k": ["a"] * 9}, ARRIVALS)]
MANY = [Page.of(SCHEMA, {"ts": [t], "k": ["a"]}, [a]) for t, a in zip(TS, ARRIVALS, strict=True)]


def graph(late: Late = Late.DROP) -> Graph:
    made = Graph("counts")
    edge = made.add(
        "edge", Punctuate(BoundedDisorder(5), granularity=10, late=late), made.source("source", SCHEMA)
    )
    count = made.add("count", WindowAggregate(Tumbling(10), {"n": Count()}, by=("k",)), edge)
    made.sink("answers", made.add("some", Filter(lambda rows: rows["n"].to_numpy() > 0), count))
    return made


def recorded(of: Graph, feed: list[Page], tuples: int = 100) -> tuple[Recording, Outcome]:
    recording = Recording(of.plan(), tuples)
    return recording, replay(of, {"source": feed}, watch=recording)


def test_tuples_and_promises_are_those_of_the_run_whatever_the_pages() -> None:
    for feed in (ONE, MANY):
        recording, outcome = recorded(graph(), feed)
        assert (recording.times.tolist(), recording.arrivals.tolist()) == (TS, ARRIVALS)
        assert recording.bounds.tolist() == [[1, -10], [12, 0], [25, 20], [40, 30], [60, 50]]
        late = recording.late()
        assert [TS[row] for row in late] == [3, 11, 12]
        assert late.size == outcome.statistics.count("late")
        assert recording.whole


def test_states_are_those_of_the_run_at_their_moments() -> None:
    for feed in (ONE, MANY):
        recording, outcome = recorded(graph(), feed)
        states = recording.states
        assert (np.diff(states[:, 0]) >= 0).all()
        peak = outcome.statistics.peak
        assert states[:, 1:].max(axis=0).tolist() == [peak.tuples, peak.partials, peak.nbytes]
        assert [sample.now for sample in outcome.statistics.series][-1] == 60
        assert len(outcome.statistics.series) > 3  # and not all of it at the end of the page


def test_in_order_the_same_tuples_are_late() -> None:
    free, ordered = recorded(graph(), MANY)[0], recorded(in_order(graph()), MANY)[0]
    assert free.late().tolist() == ordered.late().tolist()


def test_of_a_longer_run_the_beginning_is_recorded() -> None:
    recording, _ = recorded(graph(), MANY, tuples=4)
    assert recording.times.tolist() == TS[:4]
    assert recording.late().tolist() == [3]
    assert not recording.whole


def test_without_an_edge_nothing_is_late_and_the_middle_of_the_groups_is_known() -> None:
    made = Graph("told")
    edges = [made.add(f"edge{i}", Punctuate(Upstream()), made.source(f"s{i}", SCHEMA)) for i in (0, 1)]
    both = made.add(
        "both", WithColumns({"one": lambda rows: np.ones(rows.num_rows)}), made.add("meld", Meld(2), *edges)
    )
    made.sink("answers", made.add("count", WindowAggregate(Tumbling(10), {"n": Count()}, by=("k",)), both))
    keys = pa.RecordBatch.from_pydict({"k": ["a", "b", "c"]})
    said: list[Message] = [
        Page.of(SCHEMA, {"ts": [5], "k": ["a"]}, [5]),
        GroupWise(keys, np.array([30, 10, 20])),
        Linear(7),
    ]
    recording = Recording(made.plan())
    replay(made, {"s0": said, "s1": said}, watch=recording)
    assert recording.middle.tolist() == [[5, 20]]
    assert recording.bounds[0].tolist() == [5, 7]
    assert recording.late().size == 0
    bare = Graph("bare")
    bare.sink("answers", bare.source("source", SCHEMA))
    alone = Recording(bare.plan())
    replay(bare, {"source": ONE}, watch=alone)
    assert (alone.times.tolist(), alone.late().size) == (TS, 0)


def test_tuples_of_a_source_that_several_operators_read_are_recorded_once() -> None:
    made = Graph("two counts")
    stream = made.source("source", SCHEMA)
    counts = [made.add(f"count{i}", WindowAggregate(Tumbling(10), {"n": Count()}), stream) for i in range(2)]
    made.sink("answers", made.add("both", Meld(2), *counts))
    recording, _ = recorded(made, MANY)
    assert recording.times.tolist() == TS
