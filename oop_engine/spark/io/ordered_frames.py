"""DataFrames with an order of arrival, which the user declares by a column: they are replayed by it.

Spark sorts; the driver takes the sorted batches one after the other, and they are spooled as any feed of messages.  So
rows may be late here, as they were where they came, and the driver never has more than a partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrow_data import arrivals
from oop_engine.spark.io.feeds import Feed
from oop_engine.spark.io.frames import is_frame, page_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["in_declared_order"]


def in_declared_order(
    feeds: Mapping[str, Feed],
    schemas: Mapping[str, Schema],
    order: Mapping[str, str],
    arrival: Mapping[str, str],
    *,
    batch: bool,
) -> dict[str, Feed]:
    """Return ``feeds`` with the pages of those that have an order, or arrivals, by source and column.

    Raises ``UsageError`` for a source that is no DataFrame, or is read in micro-batches, or has no such column.
    """
    columns = {**order, **arrival}
    for name, column in columns.items():
        given = "arrival" if name in arrival else "order"
        if name not in feeds or not is_frame(feeds[name]) or not batch:
            msg = f"run: {given} is for sources that are DataFrames, with batch=True; got source {name!r}"
            msg += did_you_mean(name, feeds) if name not in feeds else ""
            raise UsageError(msg)
        if column not in (known := feeds[name].columns):
            msg = f"source {name!r}: {given} must be a column of its DataFrame ({', '.join(known)}); got {column!r}"
            raise UsageError(msg + did_you_mean(column, known))
        if name in order and name in arrival:
            msg = f"source {name!r}: has an order and arrivals: give one of them"
            raise UsageError(msg)
    made = {
        name: _pages(feeds[name], name, schemas[name], column, arrives=name in arrival)
        for name, column in columns.items()
    }
    return {**feeds, **made}


def _pages(frame: DataFrame, source: str, schema: Schema, column: str, *, arrives: bool) -> Iterator[Page]:
    from pyspark.sql import functions as F

    names = [*schema.names, column]
    by_number = frame.select(*(F.col(quoted(name)).alias(f"_{at}") for at, name in enumerate(names)))
    time = f"_{names.index(schema.progressing)}"
    packed = by_number.orderBy(f"_{len(names) - 1}", time).mapInArrow(_packed, "rows binary")
    for row in packed.toLocalIterator():
        batch = pa.ipc.open_stream(bytes(row["rows"])).read_next_batch()
        known = batch.filter(batch.column(names.index(schema.progressing)).is_valid())
        if (by := known.columns[-1]).null_count:
            msg = f"source {source!r}: {column!r} must not be null: leave such rows out before, with frame.filter"
            raise ContractError(msg)
        page = page_of(known.select(range(len(names) - 1)), source, schema)
        yield Page(schema, page.batch, arrivals(by, schema.unit)) if arrives else page


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield each batch as a row of bytes."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"rows": pa.array([bytes(sink.getvalue())], pa.binary())})
