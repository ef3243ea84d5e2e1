"""Values are equal by value: floats but for their last digits, all others exactly, whatever their types."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from oop_engine.lab.answers import missing_and_wrong

FLOATS, INTS = pa.list_(pa.float64()), pa.large_list(pa.int64())
FLOAT, INT, SECONDS, MILLIS = pa.float64(), pa.int64(), pa.timestamp("s"), pa.timestamp("ms")
STRUCT, MAP = pa.struct([("a", FLOAT)]), pa.map_(pa.string(), INT)
NEAR = [
    (FLOAT, 0.1 + 0.2, FLOAT, 0.3),
    (FLOAT, math.nan, FLOAT, math.nan),
    (FLOAT, -0.0, FLOAT, 0.0),
    (FLOAT, 1.0000000005 + 2e-16, FLOAT, 1.0000000005 - 2e-16),
    (FLOAT, None, FLOAT, None),
    (pa.float32(), 0.5, FLOAT, 0.5),
    (INT, 3, FLOAT, 3.0),
    (FLOAT, 3.0, INT, 3),
    (SECONDS, 2, MILLIS, 2000),
    (FLOATS, [math.nan, 0.1 + 0.2], FLOATS, [math.nan, 0.3]),
    (STRUCT, {"a": None}, STRUCT, {"a": None}),
    (MAP, [("a", 1)], MAP, [("a", 1)]),
    (pa.string(), "a", pa.large_string(), "a"),
]
FAR = [
    (FLOAT, 3e-10, FLOAT, -3e-10),
    (FLOAT, None, FLOAT, math.nan),
    (FLOAT, math.nan, FLOAT, None),
    (FLOAT, math.inf, FLOAT, 1.7e308),
    (FLOAT, 1e300, FLOAT, 1.000001e300),
    (INT, 2**53 + 1, FLOAT, float(2**53)),
    (FLOAT, float(2**53), INT, 2**53 + 1),
    (INT, 3, FLOAT, 3.0000000001),
    (pa.int32(), 3, INT, 3_000_000_000),
    (pa.uint64(), 2**64 - 1, INT, -1),
    (SECONDS, 1, MILLIS, 1500),
    (pa.string(), "a", INT, 1),
    (FLOATS, [0.31], FLOATS, [0.3]),
    (FLOATS, None, FLOATS, []),
    (INTS, [3], INTS, [4]),
    (STRUCT, None, STRUCT, {"a": None}),
    (MAP, [("a", 1)], MAP, [("a", 2)]),
]


@pytest.mark.parametrize("ends", [[1, 2], [1, 1]], ids=["by keys", "whole rows"])
@pytest.mark.parametrize(("value", "wrong"), [(one, 0) for one in NEAR] + [(one, 1) for one in FAR], ids=str)
def test_results_are_right_where_their_values_are_equal(
    value: tuple[pa.DataType, Any, pa.DataType, Any], wrong: int, ends: list[int]
) -> None:
    kind, one, other_kind, other = value
    table = pa.table({"end": ends, "v": pa.array([one, None], kind)})
    truth = pa.table({"end": ends, "v": pa.array([other, None], other_kind)})
    assert missing_and_wrong(table, truth, ("end",))[1] == wrong


def test_a_rest_of_a_sum_beside_large_values_is_nothing_and_a_small_value_is_none() -> None:
    truth = pa.table({"end": [1, 2, 3], "v": [0.0, 3e-10, 500.0]})
    for small, wrong in ((3e-10, 0), (-3e-10, 1), (0.0, 1)):
        table = pa.table({"end": [1, 2, 3], "v": [2e-14, small, 500.0]})
        assert missing_and_wrong(table, truth, ("end",)) == (0, wrong)
