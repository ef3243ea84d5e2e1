"""Speculative joins: unmatched tuples leave at the watermark, and a late match takes them back."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import (
    FOREVER,
    NEVER,
    Graph,
    GraphError,
    GroupWise,
    Linear,
    Page,
    Punctuation,
    Schema,
    Watermark,
    replay,
)
from oop_engine.joins import TumblingBand
from oop_engine.operators import AsOf, Band, BoundedDisorder, Finalize, OAJoin, Punctuate, Tumbling
from oop_engine.operators.joining.bands import Bands
from oop_engine.policies import Slow
from oop_engine.rewrites import in_order
from oop_engine.testing import Driver, multiset
from oop_engine.thesis import Bucket

S = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
Row = tuple[int, str | None]
BEFORE, AFTER = 2, 3
BAND = Band(BEFORE, AFTER)


def page(*rows: Row) -> Page:
    return Page.of(S, {"ts": [row[0] for row in rows], "k": [row[1] for row in rows]})


def speculative(kind: str, band: Bands = BAND, **more: Any) -> OAJoin:
    return OAJoin([("k", "k")], band, how=kind, speculative=True, **more)


def test_a_late_match_takes_back_until_punctuation() -> None:
    join = Driver(speculative("left", Band(0, 2)), S, S)
    join.feed(0, page((1, "a"), (5, "a"), (9, "a")))
    join.feed(1, Watermark(Linear(8)))
    assert [(row["ts"], row["ts_right"], row["change"]) for row in join.rows()] == [
        (1, None, 1),
        (5, None, 1),
    ]
    join.feed(1, page((6, "a"), (7, "a")))
    late = [(row["ts"], row["ts_right"], row["change"]) for row in join.rows()][2:]
    assert sorted(late, key=str) == [(5, 6, 1), (5, 7, 1), (5, None, -1)]
    join.feed(1, Linear(8))
    assert len(join.rows()) == 5  # they are final, and have not changed
    join.feed(1, Linear(12))
    assert [(row["ts"], row["ts_right"], row["change"]) for row in join.rows()][5:] == [(9, None, 1)]


def test_where_it_makes_no_sense() -> None:
    for kind in ("inner", "semi"):
        with pytest.raises(GraphError, match="speculative is for left, full, anti and as-of joins"):
            speculative(kind)
    with pytest.raises(GraphError, match="flush"):
        speculative("left", flush=Slow(1))
    with pytest.raises(GraphError, match="flush"):
        speculative("inner", AsOf(), flush=Slow(1))
    named = Schema({"ts": pa.int64(), "k": pa.string(), "change": pa.int8()}, "ts", "s")
    with pytest.raises(GraphError, match="rename it"):
        speculative("anti").opened(named, S)
    graph = Graph("refused")
    left, right = graph.source("left", S), graph.source("right", S)
    join = graph.add("join", speculative("anti"), left, right)
    with pytest.raises(GraphError, match="cannot take revisions"):
        graph.add("bucket", Bucket(Tumbling(10)), join)


def bound_of(table: dict[str | None, int], key: str | None) -> int:
    return max(table[None], table.get(key, NEVER)) if key is not None else table[None]


class Naive:
    """All that came, and the bounds of each side by key (None: of the stream), as the definition has them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.rows: list[list[Row]] = [[], []]
        self.hard: list[dict[str | None, int]] = [{None: NEVER}, {None: NEVER}]
        self.soft: list[dict[str | None, int]] = [{None: NEVER}, {None: NEVER}]

    def take(self, port: int, message: Page | Punctuation) -> None:
        if isinstance(message, Page):
            self.rows[port] += [(row["ts"], row["k"]) for row in message.to_pylist()]
            return
        of = message.of if isinstance(message, Watermark) else message
        assert isinstance(of, Linear | GroupWise)
        tables = [self.soft] if isinstance(message, Watermark) else [self.soft, self.hard]
        keys: list[str | None] = [None] if isinstance(of, Linear) else of.groups.column(0).to_pylist()
        below = [of.below] if isinstance(of, Linear) else of.below.tolist()
        for table, (key, bound) in product(tables, zip(keys, below, strict=True)):
            table[port][key] = max(table[port].get(key, NEVER), bound)

    def passed(self, side: int, row: Row) -> bool:
        """Tell whether nobody expects a partner of a row any more."""
        bound, reach = bound_of(self.soft[1 - side], row[1]), (AFTER, BEFORE)[side]
        return row[1] is None or bound == FOREVER or row[0] + reach < bound

    def net(self) -> Counter[Any]:
        met: list[set[int]] = [set(), set()]
        found: Counter[Any] = Counter()
        for (i, a), (j, b) in product(enumerate(self.rows[0]), enumerate(self.rows[1])):
            if a[1] == b[1] is not None and -BEFORE <= b[0] - a[0] <= AFTER:
                met[0].add(i)
                met[1].add(j)
                if self.kind != "anti":
                    found[a, b] += 1
        for side in (0, 1) if self.kind == "full" else (0,):
            for number, row in enumerate(self.rows[side]):
                if number not in met[side] and self.passed(side, row):
                    found[(row, None) if side == 0 else (None, row)] += 1
        return found


def changes(kind: str, rows: list[dict[str, Any]]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in rows:
        left = None if row["ts"] is None else (row["ts"], row["k"])
        right = None if kind == "anti" or row["ts_right"] is None else (row["ts_right"], row["k_right"])
        found[left, right] += row["change"]
    return Counter({key: count for key, count in found.items() if count})


TIMES = st.integers(0, 20)
KEYS = st.sampled_from(["a", "b", None])


@st.composite
def messages(draw: st.DrawFn) -> list[tuple[int, Page | Punctuation]]:
    """Return the messages of two sides, no tuple behind a hard bound of its own."""
    hard: list[dict[str | None, int]] = [{None: NEVER}, {None: NEVER}]
    found: list[tuple[int, Page | Punctuation]] = []
    for _ in range(draw(st.integers(1, 14))):
        port, kind = draw(st.integers(0, 1)), draw(st.integers(0, 5))
        if kind <= 1:
            rows = draw(st.lists(st.tuples(TIMES, KEYS), min_size=1, max_size=4))
            rows = [row for row in rows if row[0] >= bound_of(hard[port], row[1])]
            found.append((port, page(*rows)))
            continue
        below = draw(st.one_of(st.integers(0, 26), st.just(FOREVER) if kind == 5 else st.integers(0, 12)))
        key = draw(st.sampled_from(["a", "b"])) if kind % 2 else None
        bound: Linear | GroupWise = Linear(below) if key is None else GroupWise.of({"k": [key]}, [below])
        if kind <= 3:
            below = min(below, FOREVER - 1)
            found.append((port, Watermark(bound)))
        else:
            hard[port][key] = max(hard[port].get(key, NEVER), below)
            found.append((port, bound))
    return found


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["left", "anti", "full"]), messages(), st.data())
def test_the_net_content_is_that_of_the_definition(
    kind: str, sent: list[tuple[int, Page | Punctuation]], data: st.DataObject
) -> None:
    join, naive, plain = (
        Driver(speculative(kind), S, S),
        Naive(kind),
        Driver(OAJoin([("k", "k")], Band(BEFORE, AFTER), how=kind), S, S),
    )
    bounds: dict[str | None, int] = {None: NEVER}
    time, again = "time" if kind == "full" else "ts", data.draw(st.integers(0, len(sent)), label="snapshot")
    everything = [*sent, *((port, Linear(FOREVER)) for port in (0, 1))]
    for number, (port, message) in enumerate(everything):
        if number == again:
            saved, rows = join.operator.snapshot(), join.rows()
            join = Driver(speculative(kind), S, S)
            join.operator.restore(saved)
        elif number == 0:
            rows = []
        naive.take(port, message)
        for _, out in join.feed(port, message):
            if isinstance(out, Page):
                for row in out.to_pylist():
                    assert row[time] >= bound_of(bounds, row["k"])
            elif isinstance(out, Linear):
                bounds[None] = out.below
            elif isinstance(out, GroupWise):
                bounds |= zip(out.groups.column("k").to_pylist(), out.below.tolist(), strict=True)
        before = rows if number >= again else []
        assert changes(kind, [*before, *join.rows()]) == naive.net()
        if not isinstance(message, Watermark):
            plain.feed(port, message)
    final = [{**row, "change": 1} for row in plain.rows()]
    assert changes(kind, final) == naive.net()
    assert join.operator.state().tuples == 0


def graph(*, speculative: bool) -> Graph:
    made = Graph("joined")
    policies = BoundedDisorder(30), BoundedDisorder(1)
    inputs = [
        made.add(f"edge_{name}", Punctuate(policies[0], watermark=policies[1]), made.source(name, S))
        for name in ("left", "right")
    ]
    join = made.add(
        "join", OAJoin([("k", "k")], TumblingBand(7), how="left", speculative=speculative), *inputs
    )
    made.sink("out", join)
    if speculative:
        made.sink("final", made.add("finalize", Finalize(), join))
    return made


def feeds(cut: int) -> dict[str, list[Page]]:
    rows: list[list[Row]] = [[], []]
    for n in range(200):
        rows[n % 3 > 0].append((n - n * 7 % 13, "abc"[n * 5 % 7 % 3]))
    return {
        name: [page(*rows[port][i : i + cut]) for i in range(0, len(rows[port]), cut)]
        for port, name in enumerate(("left", "right"))
    }


@pytest.mark.parametrize("cut", [1, 5, 64])
def test_a_graph_has_the_rows_of_the_plain_one(cut: int) -> None:
    plain = replay(graph(speculative=False), feeds(cut)).results["out"]
    outcome = replay(graph(speculative=True), feeds(cut))
    twin = replay(in_order(graph(speculative=True)), feeds(cut))
    assert multiset(outcome.final("out").to_pylist()) == multiset(plain.to_pylist())
    assert multiset(outcome.results["final"].to_pylist()) == multiset(plain.to_pylist())
    assert multiset(twin.results["out"].to_pylist()) == multiset(plain.to_pylist())
    assert cut > 5 or outcome.results["out"].num_rows > plain.num_rows
