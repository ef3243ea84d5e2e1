"""Speculative as-of joins: a left tuple leaves at once with the latest right one there is; a later one replaces it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, Graph, GroupWise, Linear, Page, Punctuation, Schema, Watermark, replay
from oop_engine.operators import AsOf, BoundedDisorder, Finalize, OAJoin, Punctuate
from oop_engine.operators.keys.key_codes import KeyCodes
from oop_engine.rewrites import in_order
from oop_engine.testing import Driver, multiset
from tests.parts.operators.test_speculative_join import Naive, S, bound_of, changes, feeds, messages, page

Sent = list[tuple[int, Page | Punctuation]]


def speculative(kind: str = "inner", within: int | None = None) -> OAJoin:
    return OAJoin([("k", "k")], AsOf(within), how=kind, speculative=True)


def rows(join: Driver) -> list[tuple[int, int | None, int]]:
    return [(row["ts"], row["ts_right"], row["change"]) for row in join.rows()]


def test_a_later_right_tuple_takes_the_place_until_punctuation() -> None:
    join = Driver(speculative(), S, S)
    join.feed(1, page((1, "a"), (2, "b")))
    join.feed(0, page((5, "a"), (9, "a")))
    assert rows(join) == [(5, 1, 1), (9, 1, 1)]
    join.feed(1, page((0, "a")))  # not later than the one that they have
    assert len(rows(join)) == 2
    join.feed(1, page((7, "a"), (6, "a"), (6, "b"), (10, "a")))
    assert rows(join)[2:] == [(9, 1, -1), (9, 7, 1)]
    join.feed(1, page((7, "a")))  # of one time all match
    assert rows(join)[4:] == [(9, 7, 1)]
    join.feed(1, Linear(6))
    assert len(rows(join)) == 5  # final, and as it was
    assert join.operator.state().tuples > 0
    join.feed(1, Linear(FOREVER))
    join.feed(0, page((11, "a")))
    assert rows(join)[5:] == [(11, 10, 1)]


def test_a_tuple_without_a_match_leaves_at_the_watermark() -> None:
    join = Driver(speculative("left", within=3), S, S)
    join.feed(1, page((1, "a")))
    join.feed(0, page((5, "a"), (9, "a"), (4, None)))
    assert rows(join) == [(4, None, 1)]
    join.feed(1, Watermark(Linear(7)))
    assert rows(join)[1:] == [(5, None, 1)]
    join.feed(0, page((6, "a")))
    assert rows(join)[2:] == [(6, None, 1)]
    join.feed(1, page((3, "a")))
    assert sorted(rows(join)[3:], key=str) == [(5, 3, 1), (5, None, -1), (6, 3, 1), (6, None, -1)]
    join.feed(1, Linear(20))
    assert rows(join)[7:] == [(9, None, 1)]


class NaiveAsOf(Naive):
    """The net content: each left tuple with the latest right ones that have come, from ``within`` before it on."""

    def __init__(self, kind: str, within: int | None) -> None:
        super().__init__(kind)
        self.within = within

    def net(self) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for ts, key in self.rows[0]:
            least = NEVER if self.within is None else ts - self.within
            times = [at for at, other in self.rows[1] if other == key is not None and least <= at <= ts]
            for at in times:
                if at == max(times):
                    found[(ts, key), (at, key)] += 1
            bound = FOREVER if key is None else bound_of(self.soft[1], key)
            if not times and self.kind == "left" and (bound == FOREVER or ts < bound):
                found[(ts, key), None] += 1
        return found


def of_both(kind: str, within: int | None, sent: Sent, again: int) -> None:
    """Hold the rows against the definition behind each message, and in the end against those of the plain join."""
    plain = Driver(OAJoin([("k", "k")], AsOf(within), how=kind), S, S)
    join, naive, before = (
        Driver(speculative(kind, within), S, S),
        NaiveAsOf(kind, within),
        list[dict[str, Any]](),
    )
    bounds: dict[str | None, int] = {None: NEVER}
    for number, (port, message) in enumerate([*sent, *((port, Linear(FOREVER)) for port in (0, 1))]):
        if number == again:
            saved, before = join.operator.snapshot(), join.rows()
            join = Driver(speculative(kind, within), S, S)
            join.operator.restore(saved)
        naive.take(port, message)
        for _, out in join.feed(port, message):
            if isinstance(out, Page):
                assert all(row["ts"] >= bound_of(bounds, row["k"]) for row in out.to_pylist())
            elif isinstance(out, Linear):
                bounds[None] = out.below
            elif isinstance(out, GroupWise):
                bounds |= zip(out.groups.column("k").to_pylist(), out.below.tolist(), strict=True)
        assert changes(kind, [*before, *join.rows()]) == naive.net()
        if not isinstance(message, Watermark):
            plain.feed(port, message)
    assert changes(kind, [{**row, "change": 1} for row in plain.rows()]) == naive.net()
    assert join.operator.state().tuples == 0


KINDS = st.sampled_from(["inner", "left"])
WITHIN = st.sampled_from([None, 0, 4])


@settings(max_examples=150, deadline=None)
@given(KINDS, WITHIN, messages(), st.integers(0, 14))
def test_the_net_content_is_that_of_the_definition(
    kind: str, within: int | None, sent: Sent, again: int
) -> None:
    of_both(kind, within, sent, again)


@settings(max_examples=60, deadline=None)
@given(KINDS, WITHIN, messages(), st.integers(0, 14))
def test_keys_that_share_a_code_are_told_apart(kind: str, within: int | None, sent: Sent, again: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeyCodes, "of", lambda self, columns, rows, source=0: np.zeros(rows, np.int64))
        of_both(kind, within, sent, again)


def graph(*, speculative: bool) -> Graph:
    made = Graph("joined")
    policies = BoundedDisorder(30), BoundedDisorder(1)
    inputs = [
        made.add(f"edge_{name}", Punctuate(policies[0], watermark=policies[1]), made.source(name, S))
        for name in ("left", "right")
    ]
    join = OAJoin([("k", "k")], AsOf(20), how="left", speculative=speculative)
    stream = made.add("join", join, *inputs)
    made.sink("out", stream)
    if speculative:
        made.sink("final", made.add("finalize", Finalize(), stream))
    return made


@pytest.mark.parametrize("cut", [1, 5, 64])
def test_a_graph_has_the_rows_of_the_plain_one(cut: int) -> None:
    plain = replay(graph(speculative=False), feeds(cut)).results["out"]
    outcome = replay(graph(speculative=True), feeds(cut), check=True)
    twin = replay(in_order(graph(speculative=True)), feeds(cut))
    assert multiset(outcome.final("out").to_pylist()) == multiset(plain.to_pylist())
    assert multiset(outcome.results["final"].to_pylist()) == multiset(plain.to_pylist())
    assert multiset(twin.results["out"].to_pylist()) == multiset(plain.to_pylist())
    assert cut > 5 or outcome.results["out"].num_rows > plain.num_rows


def test_many_tuples_in_large_pages() -> None:
    of = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
    draw = np.random.default_rng(3)
    join = Driver(OAJoin([("k", "k")], AsOf(50), how="left", speculative=True), of, of)
    plain = Driver(OAJoin([("k", "k")], AsOf(50), how="left"), of, of)
    for number in range(12):
        columns = {"ts": 200 * (number // 2) + draw.integers(0, 500, 1500), "k": draw.integers(0, 20, 1500)}
        for of_both in (join, plain):
            of_both.feed(number % 2, Page.of(of, columns))
            if number > 6:
                of_both.feed(1, Linear(200 * (number // 2)))
                of_both.feed(0, Linear(200 * (number // 2)))
    for of_both in (join, plain):
        for port in (0, 1):
            of_both.feed(port, Linear(FOREVER))
    net: Counter[Any] = Counter()
    for row in join.rows():
        net[tuple(value for name, value in row.items() if name != "change")] += row["change"]
    assert +net == Counter(tuple(row.values()) for row in plain.rows())
    assert min(net.values()) >= 0
