"""Aggregates by a plain function of a list, in all kinds of windows, against the definition."""

from __future__ import annotations

import random
import statistics
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import ContractError, GraphError, Linear, Page, Schema
from oop_engine.aggregates import Collect, UserDefined
from oop_engine.operators import Session, Sliding, Tumbling, WindowAggregate
from oop_engine.testing import Driver
from oop_engine.thesis import BufferingAggregate, Consolidate, LowLevelAggregate, PartialAggregate
from oop_engine.windows import Global, Landmark

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
WINDOWS: list[Any] = [
    Tumbling(10),
    Sliding(20, 5),
    Session(4),
    Landmark(10),
    Global(),
    {"a": Tumbling(5), "b": Sliding(20, 4)},
]


def rows_of(windows: Any, aggregate: Any, pages: list[Page]) -> list[dict[str, Any]]:
    driver = Driver(WindowAggregate(windows, {"x": aggregate}, by=("k",)), SCHEMA)
    for page in pages:
        driver.feed(0, page)
        driver.move()
    driver.feed(0, "end")
    return sorted(driver.rows(), key=lambda row: str({**row, "x": 0}))


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
def test_results_are_those_of_the_function(windows: Any) -> None:
    draw = random.Random(5)
    values = [(draw.randrange(40), draw.choice("ab"), draw.choice([None, 1, 2, 5, 9])) for _ in range(60)]
    pages = [Page.of(SCHEMA, {"ts": [t], "k": [k], "v": [v]}) for t, k, v in values]
    found = rows_of(windows, UserDefined.of(statistics.pvariance, "v"), pages)
    lists = rows_of(windows, Collect("v", 100), pages)
    wanted = [
        {**row, "x": None if row["x"] is None else float(statistics.pvariance(sorted(row["x"]["values"])))}
        for row in lists
    ]
    assert found == wanted != []


def test_in_order_twins_and_halves() -> None:
    asked = {"x": UserDefined.of(max, "v", pa.int64())}
    page = Page.of(SCHEMA, {"ts": [1, 2, 13], "k": ["a", "a", "a"], "v": [4, 7, None]})
    twin = Driver(BufferingAggregate(Tumbling(10), asked), SCHEMA).run([(0, page)])
    assert [row["x"] for row in twin.rows()] == [7, None]
    first = Driver(PartialAggregate(Tumbling(10), asked, ("k",)), SCHEMA)
    second = Driver(Consolidate(Tumbling(10), asked, ("k",), tuples=SCHEMA), *first.operator.schemas_out)
    for message in (page, Linear(20)):
        for _, emitted in first.feed(0, message):
            second.feed(0, emitted)
    assert [row["x"] for row in second.rows()] == [7, None]
    with pytest.raises(GraphError, match="no room for states of any length"):
        LowLevelAggregate(Tumbling(10), asked, slots=4).opened(SCHEMA)


def test_wrong_functions_and_results() -> None:
    wrong: Any = "max"
    with pytest.raises(GraphError, match="must be a function of a list; got 'max'"):
        UserDefined.of(wrong, "v")
    page = Page.of(SCHEMA, {"ts": [1], "k": ["a"], "v": [4]})
    with pytest.raises(ContractError, match=r"str must return double values.*give returns="):
        Driver(WindowAggregate(Tumbling(10), {"x": UserDefined.of(str, "v")}), SCHEMA).run([(0, page)])
