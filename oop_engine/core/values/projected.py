"""Projected: nested values get the fields that are declared, by their names, as a reader's schema of Avro does."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["projected"]


def projected(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column whose structs have the fields of ``kind``: a field that it has not is null, others are left out.

    Types of values stay.

    >>> found = projected(pa.array([{"a": 1, "b": 2}]), pa.struct({"b": pa.int8(), "c": pa.string()}))
    >>> found.to_pylist(), found.type
    ([{'b': 2, 'c': None}], StructType(struct<b: int64, c: string>))
    """
    types = pa.types
    if types.is_struct(column.type) and types.is_struct(kind):
        return _struct(column, kind)
    if types.is_map(column.type) and types.is_map(kind):
        whole = column if not column.offset else column.take(pa.array(range(len(column))))
        items = projected(whole.items, kind.item_type)
        map_type = pa.map_(column.type.key_type, items.type)
        pairs = pa.StructArray.from_arrays([whole.keys, items], fields=list(pa.struct(_pair(map_type))))
        return pa.Array.from_buffers(map_type, len(whole), whole.buffers()[:2], children=[pairs])
    if (
        types.is_list(column.type)
        and types.is_nested(kind)
        and not (types.is_struct(kind) or types.is_map(kind))
    ):
        values = projected(column.values, kind.value_type)
        return pa.ListArray.from_arrays(column.offsets, values, mask=column.is_null())
    return column


def _pair(map_type: pa.MapType) -> list[pa.Field]:
    return [pa.field("key", map_type.key_type, nullable=False), pa.field("value", map_type.item_type)]


def _struct(column: pa.StructArray, kind: pa.StructType) -> pa.Array:
    there = dict(zip([field.name for field in column.type], column.flatten(), strict=True))
    parts = [
        projected(there[field.name], field.type) if field.name in there else pa.nulls(len(column), field.type)
        for field in kind
    ]
    fields = [pa.field(field.name, part.type) for field, part in zip(kind, parts, strict=True)]
    if not fields:
        return pa.array([None if is_null else {} for is_null in column.is_null().to_pylist()], kind)
    return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null())
