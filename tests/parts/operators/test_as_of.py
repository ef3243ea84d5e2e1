from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, GraphError, GroupWise, Linear, Page, Punctuation, Schema
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.operators import AsOf, OAJoin
from oop_engine.operators.joining import as_of as state_of
from oop_engine.operators.keys.key_codes import KeyCodes
from oop_engine.testing import END, Driver, as_messages, multiset, row_lists, scripts
from tests.naive.joins import as_of

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
NUMBERS = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
ON_K = [("k", "k")]


def driver(band: AsOf, kind: str = "left", schema: Schema = SCHEMA) -> Driver:
    return Driver(OAJoin(ON_K, band, how=kind), schema, schema)


def page(*rows: tuple[int, Any], schema: Schema = SCHEMA) -> Page:
    return Page.of(schema, {"ts": [ts for ts, _ in rows], "k": [k for _, k in rows]})


def test_a_left_tuple_leaves_when_the_right_bound_has_passed_it_for_its_key() -> None:
    d = driver(AsOf())
    d.feed(1, page((3, "a"), (4, "b")))
    d.feed(0, page((5, "a"), (5, "b"), (2, "a"), (9, None)))
    assert [(r["ts"], r["ts_right"]) for r in d.rows()] == [(9, None)]
    d.feed(1, page((5, "a")))
    d.feed(1, GroupWise.of({"k": ["a"]}, [6]))
    assert sorted((r["ts"], r["ts_right"]) for r in d.rows()[1:]) == [(2, None), (5, 5)]
    d.feed(1, Linear(6))
    assert d.rows()[-1] == {"ts": 5, "k": "b", "ts_right": 4, "k_right": "b"}


def test_a_right_tuple_waits_for_a_left_one_that_waits() -> None:
    d = driver(AsOf(within=2), "inner")
    d.feed(0, page((5, "a")))
    d.feed(1, page((3, "a")))
    d.feed(0, Linear(50))
    assert d.operator.state().tuples == 2
    d.feed(1, Linear(6))
    assert [(r["ts"], r["ts_right"]) for r in d.rows()] == [(5, 3)]
    assert d.operator.state().tuples == 0
    d.feed(0, GroupWise.of({"k": ["b"]}, [FOREVER]))
    d.feed(1, END)
    assert d.operator.state().tuples == 0


@pytest.mark.parametrize("schema", [SCHEMA, NUMBERS], ids=["texts", "integers"])
def test_right_tuples_that_later_ones_have_replaced_are_dropped(schema: Schema) -> None:
    d = driver(AsOf(), "inner", schema)
    keys: list[Any] = ["x", "y"] if schema is SCHEMA else [1, 2]
    for start in range(0, 20_000, 500):
        d.feed(1, page(*((start + i, keys[i % 2]) for i in range(500)), schema=schema))
        for port in (0, 1):
            d.feed(port, Linear(start + 500))
        assert d.operator.state().tuples <= 3 * state_of._FEW
    d.feed(0, page((20_000, keys[0]), (20_001, keys[1]), schema=schema))
    d.feed(1, END)
    assert sorted(r["ts_right"] for r in d.rows()) == [19_998, 19_999]


def test_keys_of_one_code_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyCodes, "of", lambda self, columns, rows, source=0: np.zeros(rows, np.int64))
    monkeypatch.setattr(state_of, "_FEW", 1)
    d = driver(AsOf())
    d.feed(1, page((1, "a"), (2, "b"), (3, "c"), (4, "b"), (4, "a")))
    for port in (0, 1):
        d.feed(port, Linear(5))
    d.feed(0, page((7, "a"), (8, "b"), (9, "c"), (9, "d")))
    d.feed(1, END)
    assert sorted((r["k"], r["ts_right"]) for r in d.rows() if r["ts_right"]) == [
        ("a", 4),
        ("b", 4),
        ("c", 3),
    ]


@given(st.data(), st.sampled_from([None, 0, 3]), st.sampled_from(["inner", "left"]))
def test_pairs_leave_when_they_are_known_and_not_later(
    data: st.DataObject, within: int | None, kind: str
) -> None:
    rows = [data.draw(row_lists(SCHEMA)), data.draw(row_lists(SCHEMA))]
    script = data.draw(scripts((SCHEMA, SCHEMA), rows))
    d, contract = driver(AsOf(within), kind), EdgeContract("out")
    seen: list[list[dict[str, Any]]] = [[], []]
    linear, of_keys = -(10**9), dict[Any, int]()
    for port, message in as_messages(script, (SCHEMA, SCHEMA)):
        if isinstance(message, Page):
            seen[port] += message.to_pylist()
        elif port == 1 and isinstance(message, Linear):
            linear = max(linear, message.below)
        elif port == 1 and isinstance(message, GroupWise):
            for group, below in zip(message.groups.to_pylist(), message.below.tolist(), strict=True):
                of_keys[group["k"]] = max(of_keys.get(group["k"], below), below)
        for _, out in d.feed(port, message):
            contract.check(out)
        known = [r for r in seen[0] if r["k"] is None or r["ts"] < max(linear, of_keys.get(r["k"], linear))]
        expected = as_of(kind, known, seen[1], ON_K, (SCHEMA.names, SCHEMA.names), within)
        assert multiset(d.rows()) == multiset(expected)


def needed(
    left: list[dict[str, Any]], right: list[dict[str, Any]], bounds: list[Bounds], within: int | None
) -> int:
    """Return how many right rows a left one that waits, or is to come, can match; no punctuation has ended all."""
    found = 0
    for row in right:
        of_left, of_right = (bound.of(row["k"]) for bound in bounds)
        waiting = [r["ts"] for r in left if r["k"] == row["k"] and r["ts"] >= of_right]
        next_left = min([of_left, *waiting])
        others = [r["ts"] for r in right if r["k"] == row["k"] and row["ts"] < r["ts"] <= next_left]
        ended = next_left == FOREVER or (within is not None and row["ts"] < next_left - within)
        found += row["k"] is not None and not ended and not others
    return found


class Bounds:
    """The bounds of an input, for all keys and for each."""

    def __init__(self) -> None:
        self.linear, self.of_keys = -(10**9), dict[Any, int]()

    def take(self, message: object) -> None:
        if isinstance(message, Linear):
            self.linear = max(self.linear, message.below)
        elif isinstance(message, GroupWise) and message.attributes == ("k",):
            for group, below in zip(message.groups.to_pylist(), message.below.tolist(), strict=True):
                self.of_keys[group["k"]] = max(self.of(group["k"]), below)

    def of(self, key: Any) -> int:
        return max(self.linear, self.of_keys.get(key, self.linear))


@given(
    st.data(), st.sampled_from([None, 0, 3]), st.sampled_from(["inner", "left"]), st.booleans(), st.booleans()
)
def test_a_right_tuple_stays_while_a_left_one_can_match_it(
    data: st.DataObject, within: int | None, kind: str, speculative: bool, one_code: bool
) -> None:
    rows = [data.draw(row_lists(SCHEMA)), data.draw(row_lists(SCHEMA))]
    script = data.draw(scripts((SCHEMA, SCHEMA), rows, keys=[["k"], ["k"]]))
    seen: list[list[dict[str, Any]]] = [[], []]
    bounds = [Bounds(), Bounds()]
    with ExitStack() as patches:
        patches.enter_context(patch.object(state_of, "_FEW", 0))
        if one_code:
            same = patch.object(
                KeyCodes, "of", lambda self, columns, rows, source=0: np.zeros(rows, np.int64)
            )
            patches.enter_context(same)
        d = Driver(OAJoin(ON_K, AsOf(within), how=kind, speculative=speculative), SCHEMA, SCHEMA)
        for port, message in as_messages(script, (SCHEMA, SCHEMA)):
            if isinstance(message, Page):
                seen[port] += message.to_pylist()
            else:
                bounds[port].take(message)
            d.operator._held._looked_at = 0  # type: ignore[attr-defined]
            d.feed(port, message)
            if isinstance(message, Linear) and not one_code:
                right = d.operator._held._sides[1]  # type: ignore[attr-defined]
                assert right.tuples <= needed(seen[0], seen[1], bounds, within)
    known = [r for r in seen[0] if r["k"] is None or r["ts"] < bounds[1].of(r["k"])]
    expected = as_of(kind, known, seen[1], ON_K, (SCHEMA.names, SCHEMA.names), within)
    if not speculative:
        assert multiset(d.rows()) == multiset(expected)


PUNCTUATION: dict[str, Callable[[int, list[str]], Punctuation]] = {
    "all": lambda time, keys: Linear(time + 1),
    "each key": lambda time, keys: GroupWise.of({"k": keys, "of": [time] * 3}, [time + 1] * 3),
    "end of each key": lambda time, keys: GroupWise.of({"k": keys, "of": [time] * 3}, [FOREVER] * 3),
    "end of some columns": lambda time, keys: GroupWise.of({"of": [time]}, [FOREVER]),
}
ENDS = ["end of each key", "end of some columns"]


@pytest.mark.slow(keep=12)
@pytest.mark.parametrize(("kind", "speculative"), [("inner", False), ("left", False), ("inner", True)])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("left", "right"), list(product(["all", *ENDS], PUNCTUATION)))
def test_what_is_stored_does_not_grow_with_the_keys_that_are_over(
    left: str, right: str, first: int, kind: str, speculative: bool
) -> None:
    schema = Schema({"ts": pa.int64(), "k": pa.string(), "of": pa.int64()}, "ts", "s")
    join = OAJoin([("k", "k"), ("of", "of")], AsOf(20), how=kind, speculative=speculative)
    d, stored = Driver(join, schema, schema), []
    for time in range(0, 240, 10):
        keys = [f"{time}-{number}" for number in range(3)]
        for port in (first, 1 - first):
            d.feed(port, Page.of(schema, {"ts": [time] * 3, "k": keys, "of": [time] * 3}))
        for port in (first, 1 - first):
            d.feed(port, PUNCTUATION[(left, right)[port]](time, keys))
        if time in (70, 230):
            state = d.operator.state()
            stored.append((state.tuples, state.groups, len(d.operator.snapshot())))
    assert sum(page.rows for page in d.pages()) == 72
    (few, few_groups, small), (tuples, groups, size) = stored
    assert tuples <= few + 6
    if left == right:  # else a key that has ended on one side alone has a bound of its own there
        assert groups <= few_groups + 6
        assert size <= 1.5 * small


@pytest.mark.parametrize(
    ("options", "said"),
    [({"how": "full"}, "got how='full'"), ({"residual": pc.field("ts") > 1}, "got a residual")],
)
def test_other_joins_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(GraphError, match=f"inner and left joins without a residual; {said}"):
        OAJoin(ON_K, AsOf(), **options)
