"""In which order feeds are read, and that nothing is held that need not be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import NEVER, ContractError, Linear, Page, replay
from oop_engine.extend import Message
from oop_engine.runners.dispatch import Result, Signal
from oop_engine.runners.schedule import schedule
from tests.parts.toys import Hold, Promise, Union, chain, merged, page_of

Runner = Literal["inline", "local"]
BOTH = pytest.mark.parametrize("on", ["inline", "local"])


def read(feeds: dict[str, Any], cuts: list[int] | None = None, ticks: int | None = None) -> list[tuple]:
    """What is read, in order: source, first id of the page (or what else it is), moment."""
    return [
        (
            step.source,
            first(step.message),
            step.now,
        )
        for step in schedule(feeds, cuts or [], ticks)
        if step.message is not Signal.END
    ]


def first(message: Any) -> Any:
    return message.times[0] if isinstance(message, Page) and len(message) else message


def timeless(*ids: int) -> list[Message]:
    return [page_of([(number, number)]) for number in ids]


def timed(*arrivals: int) -> list[Message]:
    return [page_of([(at, at)], [at]) for at in arrivals]


def test_feeds_without_arrivals_come_by_turns() -> None:
    feeds = {"a": timeless(1, 2, 3), "b": [Linear(0), *timeless(11)], "c": []}
    assert read(feeds) == [
        ("a", 1, NEVER),
        ("b", Linear(0), NEVER),
        ("a", 2, NEVER),
        ("b", 11, NEVER),
        ("a", 3, NEVER),
    ]


def test_beside_feeds_with_arrivals_they_come_one_before_each_message() -> None:
    feeds = {"a": timed(10, 30), "b": timeless(1, 2, 3, 4, 5, 6), "c": timed(20)}
    assert read(feeds) == [
        ("b", 1, 10),
        ("a", 10, 10),
        ("b", 2, 20),
        ("c", 20, 20),
        ("b", 3, 20),  # the end of c
        ("b", 4, 30),
        ("a", 30, 30),
        ("b", 5, 30),  # the end of a
        ("b", 6, 30),
    ]


def test_how_pages_are_cut_and_the_clock_ticks_gives_nobody_a_turn() -> None:
    feeds = {"a": [page_of([(n, n) for n in range(5)], [10, 20, 30, 40, 50])], "b": timeless(91, 92, 93)}
    plain, cut = read(feeds), read(feeds, [10], 10)
    assert [step for step in cut if step[0] == "b"] == [step for step in plain if step[0] == "b"]
    assert [step[2] for step in cut if step[1] is Signal.TICK] == [20, 30, 40, 50]


def test_a_feed_has_arrivals_as_its_first_page_with_tuples() -> None:
    empty = page_of([])
    feeds = {"a": [Linear(-5), empty, *timed(10), *timeless(11), Linear(0)], "b": timed(5, 12)}
    assert read(feeds) == [
        ("a", Linear(-5), NEVER),
        ("a", empty, NEVER),
        ("b", 5, 5),
        ("a", 10, 10),
        ("a", 11, 10),
        ("a", Linear(0), 10),
        ("b", 12, 12),
    ]
    with pytest.raises(
        ContractError, match="feed 'a': a page has arrivals, and the first one has none: give them"
    ):
        read({"a": [*timeless(1), *timed(10)]})


def endless(arrives: bool, start: int = 0) -> Iterator[Message]:
    for at in itertools.count(start, 2):
        yield page_of([(at, at)], [at] if arrives else None)


class EnoughError(Exception):
    pass


@BOTH
@pytest.mark.parametrize("arrives", [(True, True), (False, False), (True, False)], ids=str)
def test_endless_feeds_answer_and_are_read_side_by_side(on: Runner, arrives: tuple[bool, bool]) -> None:
    """Nothing is kept but what waits for a promise, and what the queues of a runner hold."""
    pushed: list[int] = []
    seen: list[int] = []

    def receive(result: Result) -> None:
        if isinstance(result.message, Page):
            seen.extend(row["id"] for row in result.message.to_pylist())
        if len(seen) >= 1000:
            raise EnoughError

    feeds = {"a": endless(arrives[0]), "b": endless(arrives[1], 1)}
    with pytest.raises(EnoughError):
        replay(merged(0, 1), feeds, on=on, on_result=receive, on_tuples=pushed.append)
    assert len(pushed) < len(seen) + (10 if on == "inline" else 10_000)  # of small pages an inbox holds 2 MiB
    odd = [number for number in seen if number % 2]
    assert abs(2 * len(odd) - len(seen)) < 40


def test_a_feed_without_arrivals_is_read_no_further_than_what_comes_next() -> None:
    """A page gives its answers before the next one is asked for."""
    seen: list[int] = []

    def feed() -> Iterator[Message]:
        for number in range(100):
            assert len(seen) == max(0, number - 1)  # each is behind the promise of the one after it
            yield page_of([(number, number)])

    def receive(result: Result) -> None:
        if isinstance(result.message, Page):
            seen.append(len(seen))

    replay(chain(Promise(0, 1), Hold()), {"source": feed()}, on_result=receive)
    assert len(seen) == 100


@given(
    st.lists(st.integers(0, 3), max_size=12),
    st.lists(st.tuples(st.sampled_from("bc"), st.integers(0, 3)), max_size=12),
    st.booleans(),
)
def test_everything_is_read_once_and_moments_never_go_back(
    gaps: list[int], others: list[tuple[str, int]], arrives: bool
) -> None:
    arrivals = list(itertools.accumulate(gaps))
    feeds = {
        "a": timed(*arrivals) if arrives else timeless(*arrivals),
        **{name: timeless(*(number for own, number in others if own == name)) for name in "bc"},
    }
    steps = list(schedule(feeds, [], None))
    for name, feed in feeds.items():
        own = [step.message for step in steps if step.source == name]
        assert own == [*feed, Signal.END]
    moments = [step.now for step in steps]
    assert moments == sorted(moments)
    for step, following in itertools.pairwise(steps):
        assert step.until is None or step.until <= following.now


def test_mixed_feeds_give_one_answer_whatever_the_pace() -> None:
    feeds = {"a": timed(*range(0, 100, 3)), "b": timeless(*range(0, 60, 2))}
    graph = merged(0, 5)
    one, other = replay(graph, feeds), replay(graph, feeds, speed=1e9)
    assert one.results["sink"].equals(other.results["sink"])
    assert one.emitted["sink"].tolist() == other.emitted["sink"].tolist()
    assert max(one.emitted["sink"]) == 99
    assert isinstance(graph.nodes["union"].operator, Union)


def test_punctuation_with_an_arrival_comes_then() -> None:
    feeds = {"a": [*timed(10), Linear(5, arrival=60), *timed(70)], "b": timed(20, 65)}
    came = [("a", 10, 10), ("b", 20, 20), ("a", Linear(5), 60), ("b", 65, 65), ("a", 70, 70)]
    assert read(feeds) == came
    ticks = [now for source, _, now in read(feeds, ticks=25) if not source]
    assert ticks == [25, 50]


@pytest.mark.parametrize("rest", [timed(50), [Linear(7, arrival=50)]])
def test_nothing_comes_before_the_arrival_of_punctuation(rest: list[Message]) -> None:
    with pytest.raises(ContractError, match="feed 'a': arrivals must not go back"):
        read({"a": [*timed(10), Linear(5, arrival=60), *rest]})


@BOTH
def test_results_come_with_the_punctuation_that_releases_them(on: Runner) -> None:
    feed = [page_of([(1, 1)], [10]), Linear(5, arrival=60), page_of([(9, 2)], [70])]
    outcome = replay(chain(Hold()), {"source": feed}, on=on)
    assert next(iter(outcome.emitted.values())).tolist() == [60, 70]
