from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import GraphError, Linear, Page, Schema
from oop_engine.operators import Latest, Sum, WindowAggregate
from oop_engine.operators.keys import key_rows
from oop_engine.testing import END, Driver
from oop_engine.windows import Landmark

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "on": pa.bool_()}, "ts", "s")


def test_how_many_count_is_a_sum_of_weights() -> None:
    latest = Driver(Latest(("k",), "on"), SCHEMA)
    number = Driver(WindowAggregate(Landmark(10), {"n": Sum("weight")}), *latest.operator.schemas_out)
    rows = [(25, "a", True), (3, "a", True), (12, "b", True), (14, "a", False), (28, "b", None)]
    ts, k, on = zip(*rows, strict=True)
    latest.feed(0, Page.of(SCHEMA, {"ts": ts, "k": k, "on": on}))
    for bound in (11, 20, 40):
        for _, message in latest.feed(0, Linear(bound)):
            number.feed(0, message)
    assert [(row["window_end"], row["n"]) for row in number.rows()] == [(10, 1), (20, 1), (30, 1)]
    assert latest.operator.state().tuples == 1


def weights(rows: list[tuple[int, str, bool]]) -> list[dict[str, Any]]:
    """Return the definition: each tuple that fits counts until the next time of its key."""
    found = list[dict[str, Any]]()
    for ts, k, on in rows:
        later = [other for other, key, _ in rows if key == k and other > ts]
        row = {"ts": ts, "k": k, "on": on}
        if on:
            found.append(row | {"at": ts, "weight": 1})
        if on and later:
            found.append(row | {"at": min(later), "weight": -1})
    return found


@pytest.mark.parametrize("dead", [0, 3, 4096])
def test_a_tuple_counts_until_the_next_one_of_its_key(monkeypatch: pytest.MonkeyPatch, dead: int) -> None:
    monkeypatch.setattr(key_rows, "_DEAD", dead)
    for seed in range(25):
        draw = random.Random(f"{dead} {seed}")
        latest, given, bound = Driver(Latest(("k",), "on"), SCHEMA), list[tuple[int, str, bool]](), 0
        for _ in range(draw.randint(1, 25)):
            match draw.choice(["page", "page", "bound", "move"]):
                case "page":
                    keys = draw.choices("abcdefgh", k=draw.randint(1, 8))
                    new = [(bound + draw.randint(0, 15), key, draw.random() < 0.7) for key in keys]
                    given += new
                    ts, k, on = zip(*new, strict=True)
                    latest.feed(0, Page.of(SCHEMA, {"ts": ts, "k": k, "on": on}))
                case "bound":
                    bound += draw.randint(0, 8)
                    latest.feed(0, Linear(bound))
                case "move":
                    latest.move()
        latest.feed(0, END)
        assert sorted(map(str, latest.rows())) == sorted(map(str, weights(given)))
        assert latest.operator.state().tuples == 0


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Latest((), "on"), "one column or more"),
        (lambda: Latest(("gone",), "on").opened(SCHEMA), "gone"),
        (lambda: Latest(("k",), pc.field("ts") + 1).opened(SCHEMA), "boolean"),
        (lambda: Latest(("k",), "on", at="k").opened(SCHEMA), "at and weight must be new columns"),
    ],
)
def test_parameters_that_do_not_fit(make: object, named: str) -> None:
    with pytest.raises(GraphError, match=named):
        make()  # type: ignore[operator]
