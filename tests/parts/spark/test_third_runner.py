"""Spark as the third runner: transcripts, the oracle of every operator, random graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from oop_engine import Change, Graph, replay
from oop_engine.extend import Message
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.testing import as_messages, draw_script, multiset, net_content, rows_of
from tests.cases import Case
from tests.laws.test_contract import CASES
from tests.laws.test_random_graphs import graphs, pages
from tests.laws.test_transcripts import TRANSCRIPTS, as_given
from tests.laws.test_transcripts import pages as pages_of
from tests.parts.spark.together import Together, in_segments
from tests.transcripts import Clock, Transcript

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEGMENTS = 3
TIMES = max(settings().max_examples // 60, 1)
"""Orders of chance in which records come, of all transcripts and of all operators: a run over all takes long."""
T = TypeVar("T")


def messages_of(transcript: Transcript) -> dict[str, list[Message]]:
    """Return what each source of a transcript says, in order."""
    found: dict[str, list[Message]] = {n.name: [] for n in transcript.graph.plan().of_kind("source")}
    for step, rows in zip(transcript.steps, as_given(transcript.steps), strict=True):
        for source, page in pages_of(transcript, rows, 2):
            found[source].append(page)
        if isinstance(step.then, tuple):
            to, message = step.then
            for source in found if isinstance(message, Change) else [to]:
                found[source].append(message)
    return found


def without_clock() -> list[Transcript]:
    """On Spark the clock is that of the segments' arrivals, not of a script."""
    return [t for t in TRANSCRIPTS if not any(isinstance(step.then, Clock) for step in t.steps)]


def all_transcripts() -> tuple[Together, list[Transcript]]:
    together, chosen = Together(), without_clock()
    for transcript in chosen:
        feeds = {name: in_segments(said, SEGMENTS) for name, said in messages_of(transcript).items()}
        together.add(transcript.graph, feeds)
    return together, chosen


def check_transcripts(chosen: list[Transcript], found: list[dict[str, Any]]) -> None:
    for transcript, results in zip(chosen, found, strict=True):
        rows = [(sink, row) for sink, of_sink in results.items() for row in of_sink]
        assert transcript.values(rows) == transcript.expected, transcript.name


@pytest.mark.slow
def test_transcripts_staged() -> None:
    together, chosen = all_transcripts()
    for seed in range(TIMES):
        check_transcripts(chosen, together.run_staged(seed=seed))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("batch", [False, True], ids=["streaming", "batch"])
def test_transcripts(spark: SparkSession, batch: bool) -> None:
    together, chosen = all_transcripts()
    check_transcripts(chosen, together.run(spark, batch=batch))


def graph_of(case: Case) -> Graph:
    graph = Graph(case.id)
    sources = [graph.source(f"in{port}", schema) for port, schema in enumerate(case.inputs)]
    made = graph.add("it", case.operator, *sources)
    for port in case.operator.outputs:
        graph.sink(f"out-{port}", made[port])
    return graph


def drawn(draw: Callable[[st.DataObject], T], number: int) -> T:
    """Return an example that the number is the seed of; the first that Hypothesis makes is always the smallest."""
    found: list[T] = []

    @seeded(number)
    @settings(max_examples=2, phases=[Phase.generate], database=None)
    @given(st.data())
    def take(data: st.DataObject) -> None:
        found.append(draw(data))

    take()
    return found[-1]


def all_cases(number: int) -> tuple[Together, list[Any]]:
    """Return every operator with a script of its own, and what its definition says of it."""
    together, expected = Together(), []
    for case in (case for case in CASES if "oracle" not in case.exempt):
        script = drawn(partial(draw_script, case), number)
        said = as_messages(script, case.inputs)
        ports = range(len(case.inputs))
        feeds = {f"in{port}": in_segments([m for to, m in said if to == port], SEGMENTS) for port in ports}
        together.add(graph_of(case), feeds)
        expected.append((case, multiset(case.oracle(rows_of(script, len(case.inputs))))))
    return together, expected


def check_cases(expected: list[Any], found: list[dict[str, Any]]) -> None:
    for (case, rows), results in zip(expected, found, strict=True):
        change = case.operator.output_schemas(case.inputs)[0].change
        told = results[f"out-{case.operator.outputs[0]}"]
        assert multiset(told if change is None else net_content(told, change)) == rows, case.id


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3, 3 + TIMES))
def test_every_operator_staged(number: int) -> None:
    together, expected = all_cases(number)
    check_cases(expected, together.run_staged(seed=number))


@pytest.mark.slow
@pytest.mark.spark
def test_every_operator(spark: SparkSession) -> None:
    together, expected = all_cases(9)
    check_cases(expected, together.run(spark))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("batch", [False, True], ids=["streaming", "batch"])
def test_random_graphs(spark: SparkSession, batch: bool) -> None:
    """Fifteen graphs of several operators, out of order and in order."""

    chosen = [drawn(lambda data: data.draw(graphs()), number) for number in range(5, 20)]
    together = Together()
    for built in chosen:
        feeds = {name: in_segments(pages(feed, 3), SEGMENTS) for name, feed in built.feeds.items()}
        together.add(built.graph, feeds)
        together.add(in_order(built.graph), feeds)
    found = together.run(spark, batch=batch)
    for number, results in enumerate(found):
        built = chosen[number // 2]
        for sink, told in enumerate(built.told):
            assert multiset(results[f"sink{sink}"]) == multiset(told.rows), built.graph.text()


def test_together_gives_what_each_graph_gives_alone() -> None:
    transcript = without_clock()[0]
    feeds = messages_of(transcript)
    together = Together()
    together.add(transcript.graph, {name: in_segments(said, 2) for name, said in feeds.items()})
    alone = replay(transcript.graph, feeds).results
    [found] = together.run_staged()
    assert {name: multiset(rows) for name, rows in found.items()} == {
        name: multiset(table.to_pylist()) for name, table in alone.items()
    }
