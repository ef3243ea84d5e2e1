"""WithColumns: new columns, replaced ones, and the promises that no longer hold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.operators.with_columns import WithColumns
from oop_engine.testing import Driver

SCHEMA = Schema({"ts": pa.timestamp("ms"), "x": pa.float64(), "k": pa.string()}, "ts")
PAGE = Page.of(
    SCHEMA, {"ts": pa.array([1, 2], pa.timestamp("ms")), "x": [9.0, None], "k": ["a", "b"]}, arrival=[7, 8]
)


def root(batch: pa.RecordBatch) -> np.ndarray:
    return np.sqrt(batch["x"].to_numpy(zero_copy_only=False))


def test_new_columns_come_last_and_replaced_ones_stay_in_place():
    driver = Driver(WithColumns({"root": root, "k": pc.utf8_upper(pc.field("k")), "again": "k"}), SCHEMA)
    [(_, page)] = driver.feed(0, PAGE)
    assert page.schema.names == ["ts", "x", "k", "root", "again"]
    assert page.column("k").to_pylist() == ["A", "B"]
    assert page.column("again").to_pylist() == ["a", "b"]  # expressions see the input
    assert page.column("root")[0].as_py() == 3.0
    assert page.arrival.tolist() == [7, 8]
    assert page.schema.progressing == "ts"


def test_other_columns_are_not_copied():
    [(_, page)] = Driver(WithColumns({"y": pc.field("x") + 1}), SCHEMA).feed(0, PAGE)
    assert page.column("x").buffers()[1].address == PAGE.column("x").buffers()[1].address


def test_an_empty_page_is_harmless():
    [(_, page)] = Driver(WithColumns({"y": root}), SCHEMA).feed(0, Page.empty(SCHEMA))
    assert len(page) == 0


@pytest.mark.parametrize(
    ("promise", "passes"),
    [
        (Linear(3), True),
        (GroupWise.of({"k": ["a"]}, [9]), True),
        (GroupWise.of({"k": ["a"], "x": [1.0]}, [9]), False),
        (Joint.of(ts=3, n=4), False),
        (Joint.of(ts=3), True),
    ],
)
def test_promises_about_a_replaced_column_are_dropped(promise, passes):
    schema = Schema(SCHEMA.fields.append(pa.field("n", pa.int64())), "ts")
    said = Driver(WithColumns({"x": pc.field("x") * 2.0, "n": pc.field("n") + 1}), schema).feed(0, promise)
    assert said == ([(0, promise)] if passes else [])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"ts": pc.field("x")}, "'ts' must stay"),
        ({"y": pc.field("z")}, "z"),
        ({"y": pc.utf8_upper(pc.field("x"))}, "does not evaluate"),
    ],
)
def test_refused_when_built(columns, words):
    with pytest.raises(GraphError, match=words):
        WithColumns(columns).output_schemas((SCHEMA,))


def test_nothing_to_compute():
    with pytest.raises(GraphError, match="at least one"):
        WithColumns({})


def test_a_function_that_changes_its_type_is_cast_or_refused():
    def fickle(batch: pa.RecordBatch) -> pa.Array:
        return pa.array(["x"] * batch.num_rows) if batch.num_rows else pa.array([], pa.int64())

    with pytest.raises(ContractError, match="fickle"):
        Driver(WithColumns({"y": fickle}), SCHEMA).feed(0, PAGE)
