"""Bytes that operators report, against those that Python and Arrow have handed out, at pages of a row and of many.

The memory is not that of the engine's own books: tracemalloc counts what Python and NumPy allocate, Arrow's pool its
buffers.  Both are read twice in one run, so only what grows with the rows counts.
"""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.growth.asleep import CASES, SCHEMA, given
from oop_engine import Operator, Page
from oop_engine.system import memory
from oop_engine.system.kernel import numba

OBJECTS = 48_000  # bytes of objects of the process that come with the first pages, whatever the rows
ROWS_A_KEY = 3


@pytest.fixture(autouse=True)
def by_numba() -> None:
    """Let Numba call kernels, as it does once they were called often; where it takes over it allocates objects."""
    numba()


def feed(operator: Operator, rows: int, start: int, stop: int) -> None:
    """Give pages of ``rows`` to each input: four rows a millisecond, three of a key."""
    for begin in range(start, stop, rows):
        i = np.arange(begin, begin + rows)
        columns = {"ts": 1000 + i // 4, "k": i // ROWS_A_KEY * 7919, "v": i * 31 % 9973}
        for port in range(len(operator.schemas_in)):
            given(operator, Page.of(SCHEMA, columns, i.copy()), port)


def used() -> int:
    """Return the bytes that Python, NumPy and Arrow have handed out."""
    gc.collect()
    traced: int = tracemalloc.get_traced_memory()[0]
    return traced + pa.total_allocated_bytes()


def grown(name: str, rows: int, few: int) -> tuple[int, int]:
    """Return how many bytes more are used, and reported, after four times ``few`` rows."""
    operator = CASES[name]()
    feed(operator, rows, 0, few)
    before, reported = used(), operator.state().nbytes
    feed(operator, rows, few, 4 * few)
    return used() - before, operator.state().nbytes - reported


@pytest.mark.slow(keep=6)
@pytest.mark.parametrize("rows", [1, 64, 8192])
@pytest.mark.parametrize("name", CASES)
def test_reported_bytes_are_those_that_are_handed_out(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_LARGE", 1 << 62)  # tracemalloc does not see memory that is mapped
    few = max(1024, rows)
    grown(name, rows, few)  # as below, so that what it compiles and caches is there
    tracemalloc.start()
    try:
        handed_out, reported = grown(name, rows, few)
    finally:
        tracemalloc.stop()
    assert abs(reported - handed_out) <= 0.1 * handed_out + OBJECTS
