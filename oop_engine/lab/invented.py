"""Invented rows: pages of any schema, for a graph whose kernels are to be loaded.

Which kernel an operator calls depends on its rows: how dense groups are, whether values are missing, whether sessions
are joined.  So rows come in many shapes, each by itself, and then one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.late.late_page import packed_rows
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS

__all__ = ["invented", "invented_runs"]

_SHAPES = (3, 500, 1, 9), (20, 1, 1, 9), (5, 50, 0, 1), (5, 50, 60, 9), (2, 500, 600, 9), (3, 2000, 1, 2000)
_ONE_AFTER_ANOTHER = (
    (9, 1, 1, 3, "rows"), (3, 500, 1, 9, "nulls"), (2, 1000, 1, 50, "mixed"), (2, 4000, 1, 4000, "mixed"),
    (2, 500, 1, 50, "nulls"), (3, 200, 300, 100, "mixed"), (2, 50, 1, 3, "mixed"), (9, 3, 20, 3, "rows"),
    (3, 9, 1, 3, "again"), (3, 3, 5, 1, "again"),
    *((1, 3, 1 << power, 1, "bridge") for power in range(14)),
)  # fmt: skip
"""Shapes of a single run, with the form of their rows: an operator that has seen much of one kind changes its way."""
_GAP_S = 60


def invented_runs() -> Iterator[Callable[[Schema], Iterator[Page]]]:
    """Yield for each run of a graph the function that makes the pages of a source of a schema."""
    for shape in _SHAPES:
        yield partial(_of_one_shape, shape)
    yield _changing


def _of_one_shape(shape: tuple[int, int, int, int], schema: Schema) -> Iterator[Page]:
    return invented(schema, *shape)


def _changing(schema: Schema) -> Iterator[Page]:
    """Yield pages of all shapes and forms, one behind the other."""
    start = 0
    for pages, rows, step_s, keys, form in _ONE_AFTER_ANOTHER:
        yield from invented(schema, pages, rows, step_s, keys, form, start)
        start += pages * (rows * step_s + _GAP_S)


def invented(
    schema: Schema, pages: int, rows: int, step_s: int, keys: int, form: str = "", start: int = 0
) -> Iterator[Page]:
    """Yield pages of so many rows, one every ``step_s`` seconds, a little out of order; a minute between pages.

    ``form``: ``"nulls"`` are among the values; times are ``"mixed"`` up; ``"rows"`` come as if pushed one by one; a
    third row is a ``"bridge"`` between two, which joins two sessions to one where the gap allows it; each
    page has the times of the one before ``"again"``.
    """
    second = TIME_UNITS.get(schema.unit, 1)
    for _ in range(0 if schema.change else pages):
        numbers = np.arange(rows)
        late = numbers * 5 % 8 if form == "mixed" else numbers % 3 * step_s
        if form == "bridge":
            late = np.array([0, -1, 1]) * step_s
        columns = {field.name: _column(field, numbers % keys, form == "nulls") for field in schema.fields}
        times = pa.array((start + numbers * step_s - late) * second)
        columns[schema.progressing] = times.cast(schema.type_of(schema.progressing))
        page = Page.of(schema, columns)
        yield (packed_rows(schema, _values(page)) or page) if form == "rows" else page
        start += (rows * step_s + _GAP_S) * (form != "again")


def _values(page: Page) -> list[tuple[Any, ...]]:
    return [*zip(*(column.to_pylist() for column in page.batch.columns), strict=True)]


def _column(field: pa.Field, numbers: NDArray[np.int64], holes: bool = False) -> pa.Array:
    """Return values of a type, with ``holes`` some of them missing; nulls of one that no number becomes."""
    values = pa.array(numbers.astype(np.int32), mask=numbers % 3 == 0 if holes else None)
    for steps in ((), (pa.string(),), (pa.int64(),)):
        try:
            return reduce(lambda column, kind: column.cast(kind), (*steps, field.type), values)
        except pa.ArrowException:
            continue
    return pa.nulls(len(numbers), field.type)
