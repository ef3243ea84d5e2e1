"""What operators say of their bytes, against the arrays and buffers that they hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.studies.sizes import held_bytes
from oop_engine import Linear, Page, Schema
from oop_engine.core.groups.group_index import KeyTables
from oop_engine.extend import GroupIndex
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.testing import Driver
from tests.cases import Case, all_cases

PAGES, ROWS = 8, 400
OBJECTS, OF_AGGREGATE = 20 * 512, 1280
"""Bytes of Python objects that need not be told: they do not grow with the tuples."""
GROUPS = 3000

CASES = all_cases()


def times(case: Case, schema: Schema, number: int) -> np.ndarray:
    """Return the times of a page, sorted: four tuples a second; of panes, ten seconds apart."""
    domain = case.domains.get(schema.progressing, ())
    if len(domain) == 1:
        return np.full(ROWS, domain[0])
    seconds = (number * ROWS + np.arange(ROWS)) // 4
    return seconds // 10 * 10 if schema.progressing == "pane_start" else seconds


KNOWN = {"prune-rolled_up", "prune-fewer_attributes"}
"""Cases whose groups are all given to the operator: no others may come."""


def column(case: Case, schema: Schema, name: str, rng: np.random.Generator) -> pa.Array:
    """Return values: those of the case where they mean something, else many different ones."""
    kind, numbers = schema.type_of(name), rng.integers(0, GROUPS, ROWS)
    if pa.types.is_string(kind) and case.id not in KNOWN:
        return pa.array([f"10.0.{n >> 8}.{n & 255}" for n in numbers.tolist()])
    if (
        name in case.domains and name != "j" and not pa.types.is_uint64(kind)
    ):  # sums of these must not overflow
        values = case.domains[name]
        return pa.array([values[n % len(values)] for n in numbers.tolist()], kind)
    return pa.array(numbers).cast(kind)


def page(case: Case, schema: Schema, number: int, rng: np.random.Generator) -> Page:
    columns = {name: column(case, schema, name, rng) for name in schema.names if name != schema.progressing}
    moments = pa.array(times(case, schema, number)).cast(pa.int64())
    columns[schema.progressing] = moments.cast(schema.type_of(schema.progressing))
    return Page.of(schema, columns, np.arange(number * ROWS, (number + 1) * ROWS))


def moments(case: Case) -> Iterator[Driver]:
    """Yield the operator after many tuples, after most are complete, and in another place."""
    rng = np.random.default_rng(7)
    driver = Driver(case.operator, *case.inputs)
    for number in range(PAGES):
        for port, schema in enumerate(case.inputs):
            driver.feed(port, page(case, schema, number, rng))
    yield driver
    for port, schema in enumerate(case.inputs):
        driver.feed(port, Linear(int(times(case, schema, PAGES - 2)[0])))
    yield driver
    driver.move()
    yield driver


@pytest.mark.slow(keep=12)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_operators_tell_the_bytes_that_they_hold(case: Case) -> None:
    for driver in moments(case):
        told, held = driver.operator.state().nbytes, held_bytes([driver.operator])
        objects = OBJECTS + OF_AGGREGATE * len(getattr(case.operator, "aggregates", ()))
        assert 0.8 * held - objects <= told <= 1.2 * held


def keys_of(kind: pa.DataType, numbers: np.ndarray) -> pa.Array:
    keys = pa.array(numbers)
    if pa.types.is_decimal(kind):
        return keys.cast(pa.decimal128(19)).cast(kind)
    return keys.cast(kind) if pa.types.is_primitive(kind) else keys.cast(pa.string()).cast(kind)


KINDS = [pa.int32(), pa.float64(), pa.string(), pa.large_binary(), pa.decimal128(38)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("tables", [KeyTables(), IN_KERNELS], ids=["numpy", "kernels"])
@pytest.mark.parametrize("rows", [1, ROWS])
def test_groups_tell_the_bytes_that_they_hold(
    kind: pa.DataType, columns: int, tables: KeyTables, rows: int
) -> None:
    index = GroupIndex([kind] * columns, tables)
    keys = keys_of(kind, np.random.default_rng(7).integers(0, GROUPS, PAGES * ROWS))
    for begin in range(0, len(keys), rows):
        index.encode([keys.slice(begin, rows)] * columns)
        if (begin + rows) % ROWS == 0:
            held = held_bytes([index])
            assert 0.8 * held - OBJECTS <= index.nbytes <= 1.2 * held
