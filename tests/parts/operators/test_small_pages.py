"""Bytes are those that are held, whatever the size of pages: the objects of small ones count for nothing."""

from __future__ import annotations

import gc
import tracemalloc

import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.aggregates import Median
from oop_engine.operators import Sum, Tumbling, WindowAggregate
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.float64()}, "ts", "s")


def fed(rows: int, many: int) -> WindowAggregate:
    operator = WindowAggregate(Tumbling(10), {"m": Median("v")}, ("k",)).opened(SCHEMA)
    for start in range(0, many, rows):
        some = range(start, start + rows)
        columns = {"ts": [5] * rows, "k": [i % 50 for i in some], "v": [i / 7 for i in some]}
        list(operator.on_page(0, Page.of(SCHEMA, columns)))
    return operator


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 16, 4000])
def test_bytes_of_lists_are_those_that_are_held(rows: int) -> None:
    fed(rows, 8000)  # as below, so that what it compiles and caches is there
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
    operator = fed(rows, 8000)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - before
    tracemalloc.stop()
    assert held <= 1.3 * operator.state().nbytes + 120_000  # of objects that do not become more


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 16, 4000])
def test_bytes_of_buffered_windows_are_those_that_are_held(rows: int) -> None:
    def buffered(many: int) -> BufferingAggregate:
        operator = BufferingAggregate(Tumbling(100_000), {"s": Sum("v")}, ("k",)).opened(SCHEMA)
        for start in range(0, many, rows):
            some = [*range(start, start + rows)]
            columns = {"ts": some, "k": [i % 50 for i in some], "v": [i / 7 for i in some]}
            list(operator.on_page(0, Page.of(SCHEMA, columns)))
        return operator

    buffered(8000)  # as below, so that what it compiles and caches is there
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
    operator = buffered(8000)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes() - before
    tracemalloc.stop()
    assert operator.state().tuples == 8000
    assert held <= 1.2 * operator.state().nbytes + 60_000  # of objects that do not become more
