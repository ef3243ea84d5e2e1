"""Zeros: a key of -0.0 is emitted as 0.0, so that results do not depend on which of the two came first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.groups.in_python import counted
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["unsigned_zeros", "with_unsigned_zeros", "zeros_in", "zeros_in_keys"]

_WITHOUT = frozenset(
    kind.id
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string(), pa.large_string(), pa.bool_())
)
"""Types that frequent keys have, and that need no look."""


def zeros_in(schema: Schema, names: Iterable[str]) -> tuple[str, ...]:
    """Return which of some columns may have a -0.0: floats, and dictionaries and nested values of these."""
    return tuple(name for name in names if _has_floats(schema.type_of(name)))


def zeros_in_keys(schemas: Sequence[Schema], keys: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the same for each input; a key names a column of each."""
    return [zeros_in(schema, [key[port] for key in keys]) for port, schema in enumerate(schemas)]


def with_unsigned_zeros(page: Page, names: tuple[str, ...]) -> Page:
    """Return a page with 0.0 in place of -0.0 in the columns ``names``; itself where there is none.

    O(rows) for each of them; nested values with a -0.0 take a step in Python each.
    """
    for name in names:
        column = page.column(name)
        if (plain := unsigned_zeros(column)) is not column:
            place, field = page.schema.fields.get_field_index(name), page.schema.fields.field(name)
            page = page.with_batch(page.schema, page.batch.set_column(place, field, plain))
    return page


def unsigned_zeros(column: pa.Array) -> pa.Array:
    """Return a column with 0.0 in place of -0.0; itself where there is none.

    >>> unsigned_zeros(pa.array([-0.0, 1.5, None])).to_pylist()
    [0.0, 1.5, None]
    >>> unsigned_zeros(pa.array([[-0.0], None])).to_pylist()
    [[0.0], None]
    """
    kind = column.type
    if not (_has_floats(kind) and _has_signed_zero(column)):
        return column
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, unsigned_zeros(column.storage))
    if pa.types.is_dictionary(kind):
        return unsigned_zeros(column.dictionary_decode()).dictionary_encode().cast(kind)  # each value once
    if pa.types.is_floating(kind):
        values = column.to_numpy(zero_copy_only=False)
        null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        return pa.array(
            np.where(values == 0, values.dtype.type(0), values), kind, mask=null, from_pandas=False
        )
    return pa.array([_unsigned(value) for value in counted(column).to_pylist()], kind)


def _has_floats(kind: pa.DataType) -> bool:
    if kind.id in _WITHOUT:
        return False
    if isinstance(kind, pa.BaseExtensionType):
        return _has_floats(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _has_floats(kind.value_type)
    inner = pa.types.is_nested(kind) and not pa.types.is_union(kind)
    return bool(pa.types.is_floating(kind)) or (
        inner and any(_has_floats(kind.field(place).type) for place in range(kind.num_fields))
    )


def _has_signed_zero(column: pa.Array) -> bool:
    kind = column.type
    if not _has_floats(kind):
        return False
    if isinstance(kind, pa.BaseExtensionType):
        return _has_signed_zero(column.storage)
    if pa.types.is_dictionary(kind):
        return _has_signed_zero(column.dictionary)
    if pa.types.is_struct(kind):
        return any(_has_signed_zero(column.field(place)) for place in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _has_signed_zero(column.keys) or _has_signed_zero(column.items)
    if pa.types.is_nested(kind):
        return _has_signed_zero(column.values)
    values = column.to_numpy(zero_copy_only=False)
    return bool((np.signbit(values) & (values == 0)).any())


def _unsigned(value: Any) -> Any:
    match value:
        case float():
            return value + 0.0
        case list():
            return [_unsigned(item) for item in value]
        case tuple():
            return tuple(_unsigned(item) for item in value)
        case dict():
            return {name: _unsigned(item) for name, item in value.items()}
    return value
