from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, GroupWise, Linear, Operator, Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.page import concat
from oop_engine.core.punctuation import Joint, Watermark
from oop_engine.extend import Message
from oop_engine.runners.backlog import MOST, Backlog, Envelope, Leave, leaves
from oop_engine.runners.dispatch import Signal
from oop_engine.runners.station import Inbox
from tests.parts.toys import SCHEMA, Hold, Promise, Union, chain, page_of

INSIDE, UP_TO_EDGE = Leave(), Leave(punctuation=False)


def envelopes(*messages: Message | Signal, port: int = 0, now: int = NEVER) -> list[Envelope]:
    return [Envelope(port, message, now, float(number)) for number, message in enumerate(messages)]


def taken(leave: Leave, *given: Envelope) -> list[list[Envelope]]:
    """Return what an operator is given, turn by turn."""
    backlog = Backlog(leave)
    for envelope in given:
        backlog.add(envelope, 1)
    assert (backlog.envelopes, backlog.nbytes) == (len(given), len(given))
    runs = [backlog.take() for _ in range(len(backlog))]
    assert (backlog.envelopes, backlog.nbytes) == (0, 0)
    return runs


def messages(runs: list[list[Envelope]]) -> list[list[object]]:
    return [[envelope.message for envelope in run] for run in runs]


def test_pages_become_one_and_promises_follow_them() -> None:
    one, two, three = page_of([(3, 1)]), page_of([(5, 2), (4, 3)]), page_of([(9, 4)])
    group = GroupWise.of({"id": [1, 2]}, [7, 8])
    joint = Joint.of(id=3, ts=9)
    given = envelopes(one, Linear(2), two, group, Linear(4), joint, three)
    [run] = taken(INSIDE, *given)
    whole = page_of([(3, 1), (5, 2), (4, 3), (9, 4)])
    assert [envelope.message for envelope in run] == [whole, group, joint, Linear(4)]
    assert [envelope.born for envelope in run] == [0, 3, 5, 1]  # as long as the first of them has waited


def test_of_watermarks_of_the_stream_the_largest_stays() -> None:
    soft, group = [Watermark(Linear(5)), Watermark(Linear(8))], Watermark(GroupWise.of({"id": [1]}, [7]))
    given = envelopes(soft[0], group, Linear(3), soft[1], page_of([(3, 1)]))
    assert messages(taken(INSIDE, *given)) == [[page_of([(3, 1)]), group, Linear(3), soft[1]]]


def test_a_smaller_promise_takes_nothing_back() -> None:
    assert messages(taken(INSIDE, *envelopes(Linear(9), Linear(4)))) == [[Linear(9)]]


@pytest.mark.parametrize("signal", [Signal.END, Signal.TICK])
def test_nothing_passes_an_end_or_a_tick(signal: Signal) -> None:
    page = page_of([(3, 1)])
    runs = taken(INSIDE, *envelopes(page, page, signal, page, Linear(2)))
    assert messages(runs) == [[page_of([(3, 1), (3, 1)])], [signal], [page, Linear(2)]]


def test_moments_stay_apart() -> None:
    page = page_of([(3, 1)])
    runs = taken(
        INSIDE,
        *envelopes(page, Linear(1), now=5),
        *envelopes(page, page, now=6),
        *envelopes(Linear(2), now=7),
    )
    assert messages(runs) == [[page, Linear(1)], [page_of([(3, 1), (3, 1)])], [Linear(2)]]


def test_arrivals_stay_apart() -> None:
    pages = [page_of([(3, 1)], [4]), page_of([(5, 2)], [4]), page_of([(5, 3)])]
    assert messages(taken(INSIDE, *envelopes(*pages, now=4))) == [[page] for page in pages]


def test_promises_stay_where_nobody_keeps_to_them_yet() -> None:
    one, two = page_of([(3, 1)]), page_of([(5, 2)])
    runs = taken(UP_TO_EDGE, *envelopes(one, two, Linear(4), two, one, Linear(5), Linear(6)))
    joined = [page_of([(3, 1), (5, 2)])], [page_of([(5, 2), (3, 1)])]
    assert messages(runs) == [joined[0], [Linear(4)], joined[1], [Linear(5)], [Linear(6)]]


def test_a_page_that_is_put_together_has_a_size() -> None:
    page = page_of([(ts, ts) for ts in range(MOST // 4)])
    assert [len(run[0].message) for run in taken(INSIDE, *envelopes(*[page] * 9))] == [MOST, MOST, MOST // 4]  # type: ignore[arg-type]
    large = page_of([(ts, ts) for ts in range(MOST + 1)])
    assert messages(taken(INSIDE, *envelopes(large, large))) == [[large], [large]]


def test_categories_of_more_values_than_their_index_counts_go_together() -> None:
    schema = Schema({"ts": pa.int64(), "k": pa.dictionary(pa.int8(), pa.string())}, "ts", "s")
    pages = [Page.of(schema, {"ts": [*range(100)], "k": [f"{name}{n}" for n in range(100)]}) for name in "ab"]
    assert messages(taken(INSIDE, *envelopes(*pages, Linear(3)))) == [[concat(schema, pages), Linear(3)]]


PAGES = st.lists(st.integers(0, 20), min_size=1, max_size=4).map(lambda ts: page_of([(t, t) for t in ts]))
LINEAR = st.builds(Linear, st.integers(0, 9))
GROUPS = st.integers(0, 9).map(lambda below: GroupWise.of({"id": [below]}, [below]))
SENT = st.lists(
    st.tuples(st.integers(0, 1), st.one_of(PAGES, LINEAR, GROUPS, st.just(Signal.TICK)), st.integers(0, 1))
)


@given(SENT, st.sampled_from([INSIDE, UP_TO_EDGE]))
def test_nothing_is_lost_and_nothing_comes_too_early(
    sent: list[tuple[int, Message | Signal, int]], leave: Leave
) -> None:
    runs = taken(leave, *(Envelope(port, message, now, 0.0) for port, message, now in sent))
    got = [(one.port, one.message, one.now) for run in runs for one in run]
    assert ticks(got) == ticks(sent)
    for port in (0, 1):
        assert rows(got, port) == rows(sent, port)
        assert promised(got, port) == promised(sent, port)
        assert all(m >= n for m, n in zip(rows_before(got, port), rows_before(sent, port), strict=True))
    if leave.punctuation:
        return
    assert [s for s in sent if not isinstance(s[1], Page)] == [g for g in got if not isinstance(g[1], Page)]


def rows(sent: list[tuple[int, Message | Signal, int]], port: int) -> list[tuple[int, int]]:
    """Return tuples with their moments, in order."""
    return [(ts, now) for p, m, now in sent if p == port and isinstance(m, Page) for ts in m.times.tolist()]


def ticks(sent: list[tuple[int, Message | Signal, int]]) -> list[tuple[int, int, int]]:
    """Return how many tuples each tick comes after, of either port."""
    at = [number for number, (_, message, _) in enumerate(sent) if isinstance(message, Signal)]
    return [(len(rows(sent[:n], 0)), len(rows(sent[:n], 1)), sent[n][2]) for n in at]


def promised(sent: list[tuple[int, Message | Signal, int]], port: int) -> tuple[int, list[list[int]]]:
    """Return the largest promise for the stream, and those for groups, in order."""
    said = [message for p, message, _ in sent if p == port]
    linear = max((m.below for m in said if isinstance(m, Linear)), default=NEVER)
    return linear, [m.below.tolist() for m in said if isinstance(m, GroupWise)]


def rows_before(sent: list[tuple[int, Message | Signal, int]], port: int) -> list[int]:
    """Return how many tuples came before each promise for groups."""
    at = [n for n, (p, message, _) in enumerate(sent) if p == port and isinstance(message, GroupWise)]
    return [len(rows(sent[:n], port)) for n in at]


def test_what_may_be_put_together_depends_on_the_place() -> None:
    graph = Graph("places")
    left, right = (graph.source(name, SCHEMA) for name in ("left", "right"))
    edge = graph.add("edge", Promise(5), graph.add("before", Operator(), left))
    both = graph.add("both", Union(), edge, graph.add("trusted", Hold(), right))
    graph.sink("melded", both)
    expected = {"before": UP_TO_EDGE, "edge": UP_TO_EDGE, "trusted": INSIDE, "both": INSIDE}
    assert leaves(graph.plan(), exact=True) == expected
    assert leaves(graph.plan(), exact=False)["both"] == Leave(exact=False)


def test_where_virtual_time_does_not_matter_moments_may_be_put_together() -> None:
    inside = Leave(exact=False)
    backlog = Backlog(inside)
    for now in range(4):
        backlog.add(Envelope(0, page_of([(now, now)], [now]), now, 0.0), 1)
    for now in (5, 9):
        backlog.add(Envelope(0, page_of([(now, now)]), now, 0.0), 1)
        backlog.add(Envelope(0, Linear(now), now, 0.0), 1)
    assert len(backlog) == 2  # with arrivals, and without
    [timed] = backlog.take()
    assert isinstance(timed.message, Page)
    assert timed.message.arrival is not None
    assert (timed.message.arrival.tolist(), timed.now) == ([0, 1, 2, 3], 3)
    [page, bound] = backlog.take()
    assert isinstance(page.message, Page)
    assert (page.message.times.tolist(), page.now, bound.message) == ([5, 9], 9, Linear(9))


async def test_an_inbox_holds_so_many_messages_or_so_many_bytes_of_small_ones() -> None:
    operator = chain(Operator()).plan().open()["o0"]
    inbox = Inbox(operator, INSIDE, capacity=4, room=20_000)
    held = 0
    while not inbox.full:
        inbox.put(Envelope(0, page_of([(1, 1)]), NEVER, 0.0))
        held += 1
    assert held == -(-20_000 // (1024 + 16))
    inbox = Inbox(operator, INSIDE, capacity=4, room=20_000)
    for now in range(4):
        assert not inbox.full
        inbox.put(Envelope(0, page_of([(1, 1)]), now, 0.0))
    assert inbox.full  # there is nothing to put together
    waiting = asyncio.ensure_future(inbox.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert messages([await inbox.take()]) == [[page_of([(1, 1)])]]
    await waiting
    large = page_of([(ts, ts) for ts in range(2_000)])
    inbox = Inbox(operator, INSIDE, capacity=4, room=20_000)
    for _ in range(4):
        assert not inbox.full
        inbox.put(Envelope(0, large, NEVER, 0.0))
    assert inbox.full


async def test_an_inbox_counts_texts_and_groups() -> None:
    schema = Schema({"ts": pa.int64(), "name": pa.string()}, "ts", "s")
    for message in (
        Page.of(schema, {"ts": [1], "name": ["x" * 30_000]}),
        GroupWise.of({"id": [*range(2_000)]}, [FOREVER] * 2_000),
    ):
        inbox = Inbox(Operator().opened(schema), INSIDE, capacity=2, room=60_000)
        for _ in range(2):
            assert not inbox.full
            inbox.put(Envelope(0, message, NEVER, 0.0))
        assert inbox.full
