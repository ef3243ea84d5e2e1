"""A replay makes emissions ahead, and a join matches pages before they come: nobody else sees a difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Graph, Page, Schema
from oop_engine.core.errors import LateTuple
from oop_engine.core.operator import Message, State
from oop_engine.core.punctuation import Linear
from oop_engine.joins import TumblingBand, WindowIdBand
from oop_engine.operators import (
    Band,
    BoundedDisorder,
    Count,
    Filter,
    Late,
    Meld,
    OAJoin,
    PerGroup,
    Punctuate,
    Tumbling,
    WindowAggregate,
)
from oop_engine.operators.joining import foreseen
from oop_engine.operators.joining.foreseen import Foreseen
from oop_engine.operators.joining.state import JoinState
from oop_engine.runners import dispatch
from oop_engine.runners.dispatch import Foresight
from oop_engine.runners.replay import replay

S = Schema({"ts": pa.int64(), "k": pa.int64(), "name": pa.string(), "v": pa.int64()}, "ts", "s")
BANDS = (Band(3, 5), Band(0, 0), Band(-1, 6), TumblingBand(7), WindowIdBand(8, 6, 3))
KEYS: tuple[list[tuple[str, str]], ...] = (
    [("k", "k")],
    [("name", "name")],
    [("k", "k"), ("name", "name")],
    [],
)


class Log:
    """All that can be seen of a run: messages on edges, with their moments, and the state after each event."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def passed(self, stream: Any, node: str, message: Message, now: int) -> None:
        """Note a message; the rows of a page in any order."""
        rows = sorted(map(repr, message.to_pylist())) if isinstance(message, Page) else repr(message)
        self.events.append((str(stream), node, now, rows))

    def kept(self, now: int, state: State) -> None:
        """Note the state of the whole graph."""
        self.events.append((now, state))


def feed(random: np.random.Generator, nulls: bool) -> Iterator[Page | Linear]:
    """Pages of some rows, out of order, some late; perhaps a bound of the source itself between them."""
    now = 0
    for _ in range(int(random.integers(1, 4))):
        rows = int(random.integers(1, 60))
        arrival = now + np.cumsum(random.integers(0, 3, rows))
        times = arrival - random.integers(0, 6, rows)
        keys = random.integers(0, int(random.choice([1, 4, 40])), rows)
        key = pa.array(keys, mask=random.random(rows) < 0.1) if nulls else keys
        columns = {"ts": times, "k": key, "name": [f"n{key % 5}" for key in keys], "v": np.arange(rows)}
        yield Page.of(S, columns, arrival=arrival)
        now = int(arrival[-1])
        if random.random() < 0.3:
            yield Linear(now - 6)


def graph_of(random: np.random.Generator) -> tuple[Graph, list[str]]:
    """A join of two streams: each one link or a union of some, perhaps the same one, or one that is selected from."""
    graph, links = Graph("join"), list[str]()
    slack, every = int(random.integers(2, 8)), int(random.integers(1, 6))
    policy: Any = BoundedDisorder(slack)
    if random.random() < 0.2:
        policy = PerGroup(policy, by=("k",))
    sides = []
    for side in ("left", "right"):
        ends = []
        for number in range(int(random.choice([1, 1, 2, 3]))):
            links.append(f"{side}{number}")
            edge = Punctuate(policy, every)
            ends.append(graph.add(f"{links[-1]}-edge", edge, graph.source(links[-1], S)))
        sides.append(graph.add(f"{side}-union", Meld(len(ends)), *ends) if len(ends) > 1 else ends[0])
    if random.random() < 0.1:
        sides[1] = sides[0]
        graph = Graph("join with itself")
        one = graph.add("edge", Punctuate(policy, every), graph.source("left0", S))
        sides, links = [one, one], ["left0"]
    elif random.random() < 0.15:
        sides[1] = graph.add("some", Filter(pc.field("v") > 3), sides[1])
    keys = KEYS[int(random.integers(len(KEYS)))]
    kind = str(random.choice(["inner"] * 6 + ["left", "anti"]))
    join = OAJoin(keys, BANDS[int(random.integers(len(BANDS)))], how=kind)
    pairs = graph.add("pairs", join, *sides)
    graph.sink("rows", pairs)
    graph.sink("counts", graph.add("count", WindowAggregate(Tumbling(5), {"n": Count()}), pairs))
    return graph, links


def seen(graph: Graph, feeds: dict[str, list[Any]]) -> tuple[Any, ...]:
    """Return all that can be seen of a replay."""
    log, results = Log(), list[Any]()

    def take(result: Any) -> None:
        rows = result.message.to_pylist() if isinstance(result.message, Page) else [repr(result.message)]
        results.append((result.sink, result.now, sorted(map(repr, rows))))

    statistics = replay(graph, feeds, watch=log, on_result=take).statistics
    operators = {name: (of.state, of.peak, of.counts, of.burst) for name, of in statistics.operators.items()}
    return log.events, results, statistics.peak, statistics.series, operators, statistics.edges


@pytest.mark.slow(keep=15)
@pytest.mark.parametrize("seed", range(60))
def test_states_moments_and_rows_are_those_of_messages_taken_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(seed)
    graph, links = graph_of(random)
    nulls = random.random() < 0.1
    feeds = {link: list(feed(random, nulls)) for link in links}
    monkeypatch.setattr(dispatch, "_ROWS", int(random.choice([1, 9, 1 << 15])))
    monkeypatch.setattr(dispatch, "_MESSAGES", int(random.choice([1, 5, 1 << 13])))
    monkeypatch.setattr(foreseen, "_MOST", int(random.choice([30, 1 << 20, 1 << 20, 1 << 20])))
    ahead = seen(graph, feeds)
    monkeypatch.setattr(JoinState, "foresees", False)
    assert ahead == seen(graph, feeds)


def two_links(**of_edge: Any) -> tuple[Graph, dict[str, list[Any]]]:
    random, graph = np.random.default_rng(1), Graph("two links")
    edges = [
        graph.add(f"{link}-edge", Punctuate(BoundedDisorder(6), 2, **of_edge), graph.source(link, S))
        for link in ("left", "right")
    ]
    graph.sink("rows", graph.add("pairs", OAJoin([("k", "k")], Band(3, 5)), *edges))
    return graph, {link: list(feed(random, nulls=False)) for link in ("left", "right")}


def test_parts_of_pages_are_matched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    told, taken, take = list[int](), list[bool](), Foreseen.take

    def note(self: Foreseen, side: int, page: Page) -> Any:
        taken.append((found := take(self, side, page)) is not None)
        return found

    monkeypatch.setattr(Foreseen, "take", note)
    expect = Foreseen.expect

    def count(self: Foreseen, side: int, pages: Sequence[Page]) -> None:
        told.append(len(pages))
        expect(self, side, pages)

    monkeypatch.setattr(Foreseen, "expect", count)
    graph, feeds = two_links()
    replay(graph, feeds)
    assert all(taken)
    assert len(taken) == sum(told) > 3 * len(told)


def test_nothing_is_made_ahead_where_nobody_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(Foresight, "__init__", fail)
    graph, feeds = two_links()
    replay(graph, feeds, flat_out=True)
    lone = Graph("no join")
    lone.sink("out", lone.add("edge", Punctuate(BoundedDisorder(6), 2), lone.source("left", S)))
    replay(lone, {"left": feeds["left"]})


def test_a_late_tuple_is_an_error_behind_the_messages_before_it() -> None:
    graph, _ = two_links(late=Late.RAISE)
    columns = {"ts": [0, 9, 20, 1], "k": [1] * 4, "name": ["a"] * 4, "v": [0] * 4}
    page, log = Page.of(S, columns, arrival=[0, 9, 20, 21]), Log()
    with pytest.raises(LateTuple):
        replay(graph, {"left": [page], "right": [page]}, watch=log)
    came = [event for event in log.events if event[0] == "left-edge.out" and event[1] == "pairs"]
    assert sum(len(rows) for *_, rows in came if isinstance(rows, list)) == 3
