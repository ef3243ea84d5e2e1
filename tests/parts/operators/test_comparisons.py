"""Comparisons that are called by themselves: the same as by Arrow's engine of expressions, and none but those."""

from __future__ import annotations

import operator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine.operators.values import comparisons
from oop_engine.operators.values.comparisons import compared
from oop_engine.operators.values.expressions import _computed

SIGNS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("compare", SIGNS, ids=lambda of: of.__name__)
def test_a_comparison_is_that_of_arrows_expressions(compare: Any, kind: pa.DataType) -> None:
    values = [0, 1, 2, 7, 127, None] + ([] if str(kind).startswith("u") else [-1, -128])
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values, kind), pa.array(range(len(values)))], names=["a", "b"]
    )
    for number in (-129, -128, -1, 0, 2, 127, 128, 255, 256, 2**31, 2**40, -(2**40)):
        expression = compare(pc.field("a"), number)
        found = compared(expression, batch)
        fits = -(2 ** (kind.bit_width - 1)) <= number < 2 ** (kind.bit_width - 1)
        if str(kind).startswith("u"):
            fits = 0 <= number < 2**kind.bit_width
        assert (found is not None) is fits
        if found is not None:
            assert found.equals(_computed([expression], batch)[0])


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("a") > 2.5, pc.field("f") == 2, pc.field("t") == 2, (pc.field("a") == 2) & (pc.field("a") < 9),
        ~(pc.field("a") == 2), pc.scalar(2) < pc.field("a"), pc.field("a") == pa.scalar(2, pa.int8()),
        pc.field("s") == "(a == 2)", pc.field("a").is_null(), pc.field("a") + 1 == 2,
        pc.field("a") == pa.scalar(None, pa.int64()), pc.field("a") == 10**18,
    ],
    ids=str,
)  # fmt: skip
def test_others_go_the_usual_way(expression: pc.Expression) -> None:
    columns = {
        "a": pa.array([1, 2, None]), "f": pa.array([1.0, 2.0, None]), "s": pa.array(["x", "(a == 2)", None]),
        "t": pa.array([1, 2, None], pa.timestamp("s")),
    }  # fmt: skip
    assert compared(expression, pa.RecordBatch.from_pydict(columns)) is None


def test_an_expression_in_the_place_of_one_that_is_gone_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, 2, 3]})
    monkeypatch.setattr(comparisons, "_MOST", 3)
    for number in range(50):
        found = compared(pc.field("a") > number % 5, batch)
        assert found is not None
        assert found.to_pylist() == [one > number % 5 for one in (1, 2, 3)]
