from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import GraphError, Linear, Page, Schema
from oop_engine.operators import Landmark, Latest, Sum, WindowAggregate
from oop_engine.testing import Driver

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
