"""Change feeds: changes as tables of others have them, for sinks that write a revision stream.

    _change_type       insert, delete, or update_preimage and update_postimage of one key, as Delta and Spark name them
    _commit_version    the number of the epoch
    _commit_timestamp  when its file was written

A row that is retracted and one that is emitted with the same key in one page are the two images of an update.
A sink that can neither write such a feed nor keep the column of changes refuses the stream (``no_revisions``); one
whose rows have a key may keep the net content instead (``net_changes``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["change_feed", "feed_fields", "net_changes", "no_revisions"]

_STAMP = pa.timestamp("us", "UTC")
_TYPES = ("insert", "delete", "update_postimage", "update_preimage")


def no_revisions(schema: Schema, place: str, why: str) -> None:
    """Raise ``GraphError`` for a revision stream, in the name of the sink ``place`` that cannot take rows back."""
    if schema.change is not None:
        msg = (
            f"{place}: {why}; got a revision stream (changes {schema.change}): put Finalize before the sink, "
            "ask for final results only (no emit), or write a change feed (PartFiles, Parquet on Spark)"
        )
        raise GraphError(msg)


def feed_fields(schema: Schema) -> pa.Schema:
    """Return the columns of the change feed of a revision stream."""
    more = [("_change_type", pa.string()), ("_commit_version", pa.int64()), ("_commit_timestamp", _STAMP)]
    return pa.schema([*schema.plain().fields, *(pa.field(name, kind) for name, kind in more)])


def change_feed(page: Page, key: Sequence[str], version: int, at_s: float) -> pa.RecordBatch:
    """Return the changes of a page, as of the commit ``version`` at ``at_s`` seconds since 1970.

    Raises ``ContractError`` if a change is neither +1 nor -1.  O(rows).
    """
    schema, rows = page.schema, len(page)
    assert schema.change is not None
    changes: NDArray[np.int64] = page.column(schema.change).fill_null(0).to_numpy().astype(np.int64)
    if not np.isin(changes, (-1, 1)).all():
        msg = f"a revision stream: {schema.change!r} must be +1 or -1; got {set(changes.tolist())}"
        raise ContractError(msg)
    kind = (changes < 0).astype(np.int64)
    if key:
        index = GroupIndex([schema.type_of(name) for name in key])
        slots = index.encode([page.column(name) for name in key], rows)
        there = np.zeros((2, len(index)), np.bool_)
        there[kind, slots] = True
        kind += 2 * (there[0] & there[1])[slots]
    batch = page.batch.select(schema.plain().names)
    stamp = pa.scalar(round(at_s * 1e6), pa.int64()).cast(_STAMP)
    types = pa.array(_TYPES).take(pa.array(kind))  # not of the module: it would load pandas
    columns = [*batch.columns, types, pa.repeat(version, rows), pa.repeat(stamp, rows)]
    return pa.RecordBatch.from_arrays(columns, schema=feed_fields(schema))


def net_changes(
    rows: pa.RecordBatch, changes: NDArray[np.int64], key: Sequence[str]
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return which rows are retracted and which are emitted, once equal rows of opposite ``changes`` are left out.

    Of a ``key`` at most one row is emitted, the last one, and none is retracted beside it: it is replaced.  O(rows).
    """
    index = GroupIndex(rows.schema.types)
    slots = index.encode(rows.columns, rows.num_rows)
    net, last = np.zeros((2, len(index)), np.int64)
    np.add.at(net, slots, changes)
    np.maximum.at(last, slots, np.arange(slots.size))
    put, removed = np.sort(last[net > 0]), rows.take(pa.array(np.sort(last[net < 0])))
    keys = GroupIndex([rows.schema.field(name).type for name in key])
    codes = keys.encode([rows.column(name).take(pa.array(put)) for name in key], put.size)
    newest = np.zeros(len(keys), np.int64)
    np.maximum.at(newest, codes, put)
    alone = keys.find([removed.column(name) for name in key], removed.num_rows) < 0
    return removed.filter(pa.array(alone)), rows.take(pa.array(newest))
