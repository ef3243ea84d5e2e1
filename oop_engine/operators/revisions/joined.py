"""Changes of joined rows: the join of two revision streams is one, whose changes are products.

Joining is bilinear: a row that is there twice joins twice, and taking one back takes its joined rows back.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.schema import Schema

__all__ = ["joined_changes", "with_changes"]


def joined_changes(joined: Schema, left: Schema, right: Schema, right_names: Sequence[str]) -> Schema:
    """Return the schema of a join with one column of changes, if a side has one; ``right_names``: as in the output."""
    on_right = None if right.change is None else right_names[right.names.index(right.change)]
    if left.change is None or on_right is None:
        change = left.change or on_right
        return joined if change is None else Schema(joined.fields, joined.progressing, joined.unit, change)
    fields = pa.schema([field for field in joined.fields if field.name != on_right])
    return Schema(fields, joined.progressing, joined.unit, left.change)


def with_changes(joined: pa.RecordBatch, schema: Schema, dropped: Sequence[str]) -> pa.RecordBatch:
    """Return joined rows as ``schema`` has them; ``dropped``: the second column of changes, if there is one."""
    if not dropped:
        return joined
    product = pc.multiply(joined.column(schema.change), joined.column(dropped[0]))
    columns = [product if name == schema.change else joined.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema.fields)
