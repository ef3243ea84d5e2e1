"""Distances of two numbers, and the trigger that goes by them, beside integers and fractions of Python."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine.operators.triggers.distances import are_apart, is_measured

LEAST, MOST = -(2**63), 2**63 - 1
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int64": (pa.int64(), [None, LEAST, MOST, -1, 0, 1, 2**53, 2**53 + 1]),
    "uint64": (pa.uint64(), [None, 0, 1, 2**53 + 1, 2**63, 2**64 - 1]),
    "int8": (pa.int8(), [None, -128, 127, 0]),
    "bool": (pa.bool_(), [None, True, False]),
    "decimal128": (pa.decimal128(38, 2), [None, *map(Decimal, ("0.10", "0.20", "0.30", "1e35", "-9e35"))]),
    "decimal256": (pa.decimal256(76, 1), [None, *map(Decimal, ("0.1", "0.2", "9e74", "-9e74"))]),
    "double": (pa.float64(), [None, 0.5, -1.5, 2.0**60]),
    "float": (pa.float32(), [None, 0.5, -1.5]),
}
BOUNDS = (0, 0.1, 0.5, 1, 255, 2.0**53, 2.0**64, 1e40)


@pytest.mark.parametrize("name", KINDS)
def test_distances_are_those_of_fractions(name: str) -> None:
    kind, values = KINDS[name]
    draw = random.Random(7)
    now, last = ([draw.choice(values) for _ in range(200)] for _ in range(2))
    for by in BOUNDS:
        found = are_apart(pa.array(now, kind), pa.array(last, kind), by)
        assert found.dtype == np.bool_
        bound = Fraction(repr(float(by)))
        wanted = [
            None not in (a, b) and abs(Fraction(a) - Fraction(b)) > bound
            for a, b in zip(now, last, strict=True)
        ]
        assert found.tolist() == wanted


def test_a_moment_is_apart_by_its_unit_and_endless_floats_by_nothing() -> None:
    start = dt.datetime(2026, 1, 1)
    moments = [pa.array([start + dt.timedelta(seconds=one)], pa.timestamp("ms")) for one in (0, 2)]
    assert are_apart(moments[0], moments[1], 1999).tolist() == [True]
    assert are_apart(moments[0], moments[1], 2000).tolist() == [False]
    endless = pa.array([float("inf"), float("inf"), float("nan")])
    assert are_apart(endless, pa.array([float("inf"), 1.0, 1.0]), 0).tolist() == [False, True, False]


def test_texts_and_lists_have_no_distance() -> None:
    assert [is_measured(kind) for kind in (pa.string(), pa.list_(pa.int64()), pa.date32())] == [
        False,
        False,
        True,
    ]
