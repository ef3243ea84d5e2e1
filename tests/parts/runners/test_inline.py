from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, ContractError, Graph, Linear, Operator, Page, UsageError
from oop_engine.errors import OperatorError, SnapshotError
from oop_engine.operators import BoundedDisorder, Count, Meld, Punctuate, Session, Tumbling, WindowAggregate
from oop_engine.runners.dispatch import Result
from oop_engine.runners.inline import Inline
from oop_engine.testing import multiset
from tests.parts.toys import SCHEMA, Fail, Hold, Promise, chain, diamond, merged, page_of


def rows(results: list[Result], sink: str = "sink") -> list[dict]:
    return [
        r
        for result in results
        if result.sink == sink and isinstance(result.message, Page)
        for r in result.message.to_pylist()
    ]


def test_late_tuples_are_counted_while_the_graph_runs() -> None:
    graph = Graph("late")
    edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("source", SCHEMA))
    graph.sink("sink", edge)
    inline = Inline(graph, lambda result: None)
    inline.push("source", page_of([(20, 1), (3, 2)]))
    inline.drain()
    assert str(inline.statistics.late) == "1 of 2 tuples were late at 'edge' (50 %)"
    again = Inline(graph, lambda result: None)
    again.restore(inline.snapshot())
    assert again.statistics.late.total == 0
    again.push("source", page_of([(3, 2), (30, 2)]))
    again.drain()
    assert again.statistics.late.total == 1


def test_a_state_that_does_not_fit_is_refused_with_its_node_and_the_way_out() -> None:
    def counting(windows: Tumbling | Session) -> Graph:
        graph = Graph("counts")
        graph.sink(
            "sink", graph.add("w", WindowAggregate(windows, {"n": Count()}), graph.source("source", SCHEMA))
        )
        return graph

    saved = Inline(counting(Session(5)), lambda result: None).snapshot()
    with pytest.raises(
        SnapshotError, match=r"graph 'counts', node 'w': .*there must be .*: --without-state-of w$"
    ):
        Inline(counting(Tumbling(5)), lambda result: None).restore(saved)


def test_what_is_pushed_comes_out_after_its_promise() -> None:
    results: list[Result] = []
    inline = Inline(chain(Hold()), results.append, check=True)
    inline.push("source", page_of([(5, 1), (3, 2)]))
    inline.drain()
    assert results == []
    inline.push("source", Linear(4))
    inline.drain()
    assert [r.message for r in results] == [page_of([(3, 2)]), Linear(4)]
    inline.end("source")
    inline.drain()
    assert [r.message for r in results[2:]] == [page_of([(5, 1)]), Linear(FOREVER)]
    assert inline.statistics.count("held") == 2
    assert inline.statistics.peak.tuples == 2
    assert inline.statistics.state.tuples == 0
    assert {name: (e.pages, e.tuples, e.punctuations) for name, e in inline.statistics.edges.items()} == {
        "source -> o0": (1, 2, 1),
        "o0 -> sink": (2, 2, 2),
    }


def test_the_earliest_moment_goes_first_whatever_was_pushed_first() -> None:
    results: list[Result] = []
    inline = Inline(merged(slack=0), results.append, check=True)
    inline.push("a", page_of([(10, 1), (30, 2), (50, 3)], [10, 30, 50]))
    inline.push("b", page_of([(20, 4), (40, 5)], [20, 40]))
    inline.drain(before=40)
    assert [(r.now, r.message) for r in results] == [
        (20, Linear(10)),
        (30, page_of([(10, 1)])),
        (30, Linear(20)),
    ]
    inline.drain(before=41)
    assert [(r.now, r.message) for r in results[3:]] == [(40, page_of([(20, 4)])), (40, Linear(30))]
    inline.end("a")
    inline.end("b")
    inline.drain()
    assert [(r.now, r.message) for r in results[5:]] == [
        (50, page_of([(30, 2), (40, 5)])),  # the other has ended at 40
        (50, Linear(50)),
        (50, page_of([(50, 3)])),
        (50, Linear(FOREVER)),
    ]


def test_a_source_that_ends_early_does_not_hold_back_the_other() -> None:
    results: list[Result] = []
    inline = Inline(merged(slack=0), results.append, check=True)
    inline.push("a", page_of([(10, 1)], [10]))
    inline.end("a")
    inline.push("b", page_of([(20, 2), (30, 3)], [20, 30]))
    inline.drain()
    assert rows(results) == [{"ts": 10, "id": 1}, {"ts": 20, "id": 2}]


def test_the_clock_does_not_tick_for_who_has_ended() -> None:
    results: list[Result] = []
    inline = Inline(merged(slack=0, clock_every=10, lull=5), results.append, check=True)
    assert inline.clock_every == 10
    inline.push("a", page_of([(10, 1)], [10]))
    inline.end("a")
    inline.clock(40)
    inline.drain()
    inline.clock(50)
    inline.push("b", page_of([(60, 2)], [60]))
    inline.drain()
    assert inline.operators["left"].ticks == []  # type: ignore[attr-defined]
    assert inline.operators["right"].ticks == [40, 50]  # type: ignore[attr-defined]
    assert [(r.now, r.message) for r in results if not isinstance(r.message, Page)] == [
        (40, Linear(30)),
        (50, Linear(40)),
        (60, Linear(60)),
    ]


def test_nobody_asks_for_a_clock_by_default() -> None:
    assert Inline(chain(Hold()), print).clock_every is None


def test_a_suspended_generator_finishes_its_page_before_the_next_message() -> None:
    results: list[Result] = []
    inline = Inline(chain(Promise(0), Hold()), results.append, check=True)
    inline.push("source", page_of([(10, 1), (20, 2), (30, 3)], [7, 7, 7]))
    inline.push("source", page_of([(40, 4)], [7]))
    inline.push("source", Linear(45))
    inline.drain()
    assert [r.now for r in results] == [7] * len(results)
    assert [row["id"] for row in rows(results)] == [1, 2, 3, 4]


def test_pages_lose_their_arrivals_at_the_generator() -> None:
    results: list[Result] = []
    inline = Inline(chain(Operator(), Promise(0)), results.append)
    inline.push("source", page_of([(10, 1)], [10]))
    inline.drain()
    assert [r.message.arrival for r in results if isinstance(r.message, Page)] == [None]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=12),
    st.lists(st.integers(1, 4), min_size=12),
)
def test_a_diamond_gives_each_tuple_once(events: list[tuple[int, int]], cuts: list[int]) -> None:
    results: list[Result] = []
    inline = Inline(diamond(), results.append)
    events = [(ts, number) for number, (ts, _) in enumerate(events)]
    start = 0
    for cut in cuts:
        if part := events[start : start + cut]:
            inline.push("source", page_of(part, list(range(start, start + len(part)))))
        start += cut
    inline.push("source", page_of(events[start:], list(range(start, max(start, len(events))))))
    inline.end("source")
    inline.drain()
    assert multiset(rows(results)) == multiset({"ts": ts, "id": n} for ts, n in events)
    assert multiset(rows(results, "odds")) == multiset({"ts": ts, "id": n} for ts, n in events if n % 2)


def test_empty_pages_go_nowhere() -> None:
    results: list[Result] = []
    inline = Inline(chain(Operator()), results.append)
    inline.push("source", page_of([]))
    inline.drain()
    assert results == []
    assert inline.statistics.edges["source -> o0"].pages == 0


def test_an_error_comes_out_with_its_place() -> None:
    inline = Inline(chain(Fail(2)), print)
    inline.push("source", page_of([(1, 2)]))
    with pytest.raises(
        OperatorError, match=r"operator 'o0' \(Fail\), page of 1 row, .*: ZeroDivisionError: no 2"
    ):
        inline.drain()


def test_a_source_that_lies_is_caught_at_its_edge() -> None:
    inline = Inline(chain(Hold()), print, check=True)
    inline.push("source", Linear(5))
    with pytest.raises(ContractError, match=r"^edge 'source -> o0': tuple {'ts': 4, 'id': 1} came after"):
        inline.push("source", page_of([(4, 1)]))
    with pytest.raises(ContractError, match="edge 'source -> o0': bound 4 is below the bound 5 before it"):
        inline.push("source", Linear(4))


def test_wrong_sources_are_refused() -> None:
    inline = Inline(merged(0), print)
    with pytest.raises(UsageError, match="graph 'merged' has no source 'c'; it has a, b"):
        inline.push("c", Linear(1))
    inline.end("a")
    for late in (lambda: inline.push("a", Linear(1)), lambda: inline.end("a")):
        with pytest.raises(UsageError, match="source 'a' has ended"):
            late()


def test_a_graph_moves_midway() -> None:
    stayed: list[Result] = []
    moved: list[Result] = []
    one, two = Inline(chain(Hold()), stayed.append), Inline(chain(Hold()), moved.append)
    one.push("source", page_of([(5, 1), (3, 2)]))
    with pytest.raises(UsageError, match="1 messages are queued; drain before a snapshot"):
        one.snapshot()
    one.drain()
    two.restore(one.snapshot())
    for runner in (one, two):
        runner.push("source", Linear(4))
        runner.end("source")
        runner.drain()
    assert [r.message for r in moved] == [r.message for r in stayed]


def test_without_arrivals_it_is_first_come_first_served() -> None:
    results: list[Result] = []
    inline = Inline(merged(slack=0), results.append)
    inline.push("b", page_of([(20, 1)]))
    inline.push("a", page_of([(10, 2)]))
    inline.end("b")
    inline.drain()
    inline.end("a")
    inline.drain()
    assert [row["id"] for row in rows(results)] == [2, 1]
    assert {r.now for r in results} == {NEVER}


def test_a_snapshot_of_a_graph_is_taken_as_a_whole_or_not_at_all() -> None:
    graph = chain(Meld(1), Meld(1))
    runner, fresh, other = (Inline(graph, lambda result: None) for _ in range(3))
    runner.push("source", Linear(7))
    runner.drain()
    states = runner.snapshot()
    fresh.restore(states)
    assert promised(fresh) == [7, 7]
    last = list(fresh.operators)[-1]
    damaged = states[last][:-1]
    for changed in (states | {last: damaged}, {"": states[""]}, states | {"": damaged}):
        with pytest.raises(SnapshotError):
            other.restore(changed)
        assert promised(other) == [NEVER, NEVER]


def promised(runner: Inline) -> list[int]:
    return [operator.save()["progress"]["linear_out"] for operator in runner.operators.values()]
