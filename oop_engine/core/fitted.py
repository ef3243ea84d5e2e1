"""Fitted: punctuation cast to the types of its stream.

Whoever makes punctuation by hand leaves the types of keys to Arrow: a ``datetime`` becomes microseconds, a
number 64 bits.  Keys are found by their values, so they must be of the stream's types before an operator sees them.
This is the only place that casts them, and runners pass every message through it.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.groups.group_index import comparable
from oop_engine.core.punctuation import FOREVER, GroupWise, Joint, Watermark
from oop_engine.core.schema import Schema

__all__ = ["exactly", "fitted", "is_below", "once_each"]

_KINDS = {
    "number": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "bytes": (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary),
    "day or instant": (pa.types.is_date,),
    "time of day": (pa.types.is_time,),
    "length of time": (pa.types.is_duration,),
}  # fmt: skip

AnyMessage = TypeVar("AnyMessage")


def fitted(message: AnyMessage, schema: Schema, place: str) -> AnyMessage | GroupWise:
    """Return a message of a stream of ``schema``: punctuation in its types, anything else as it is.

    A group whose key no value of its column can equal is left out: no tuple is of it.  Raises ``ContractError``
    in the name of ``place`` if an attribute is no column, or its type and the column's have no values in
    common.  O(attributes) where the types are right, as they are between operators; else O(groups).
    """
    match message:
        case GroupWise():
            return message if _fits(message.groups.schema, schema.fields) else _cast(message, schema, place)
        case Joint():
            for name in message.attributes:
                _check_ordered(name, schema, place)
        case Watermark(GroupWise() as of):
            return replace(message, of=fitted(of, schema, place))
    return message


def once_each(punctuation: GroupWise) -> GroupWise:
    """Return the punctuation with each group once: of several bounds for one group the largest holds.

    O(groups) in Arrow; of integers mostly by a sort, which takes a tenth of the hashing.

    >>> once = once_each(GroupWise.of({"k": ["a", "b", "a"]}, [10, 5, 20]))
    >>> once.groups.to_pydict(), once.below
    ({'k': ['a', 'b']}, array([20,  5]))
    """
    if any(map(_all_differ, punctuation.groups.columns)):
        return punctuation
    codes = np.zeros(len(punctuation), np.int64)
    for column in punctuation.groups.columns:
        values = comparable(column).dictionary_encode(null_encoding="encode")
        if len(values.dictionary) == len(punctuation):
            return punctuation
        pairs = codes * len(values.dictionary) + values.indices.to_numpy()
        codes = pa.array(pairs).dictionary_encode().indices.to_numpy()
    _, first, rows = np.unique(codes, return_index=True, return_inverse=True)
    if first.size == codes.size:
        return punctuation
    bounds = punctuation.below[first]
    np.maximum.at(bounds, rows, punctuation.below)
    return GroupWise(punctuation.groups.take(pa.array(first)), bounds)


def _all_differ(column: pa.Array) -> bool:
    """Tell whether a column is of integers that all differ."""
    if not pa.types.is_integer(column.type) or column.null_count:
        return False
    values = np.sort(column.to_numpy())
    return bool((values[1:] > values[:-1]).all())


def exactly(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]] | None:
    """Return the values of ``column`` as ``kind``, and which of them it has; None if it can have none of them.

    A value is the same if going there and back makes no difference; null is null in every type.

    >>> exactly(pa.array([1.0, 1.5]), pa.int8())[1]
    array([ True, False])
    """
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), kind), np.ones(len(column), np.bool_)
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    target = kind.value_type if pa.types.is_dictionary(kind) else kind
    if _kind_of(plain.type) != _kind_of(target):
        return None
    try:
        values = plain.cast(target, safe=False)
        same = _same(plain, values, values.cast(plain.type, safe=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values, same = _one_by_one(plain, target)
    return _encoded(values, kind) if pa.types.is_dictionary(kind) else values, same


def _encoded(values: pa.Array, kind: pa.DictionaryType) -> pa.Array:
    """Return values as a dictionary; Arrow itself casts texts and bytes only."""
    found = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        found.indices.cast(kind.index_type), found.dictionary, ordered=kind.ordered
    )


def is_below(column: pa.Array, bound: int) -> NDArray[np.bool_]:
    """Tell which values of a column of integers or instants are below ``bound``, bool (rows,); null is not.

    ``FOREVER`` is above all.
    """
    known: NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    if bound == FOREVER or not known.any():
        return known
    known = known.copy()
    if pa.types.is_uint64(column.type):
        known &= column.fill_null(0).to_numpy() < np.uint64(max(bound, 0))
    else:
        known &= column.cast(pa.int64()).fill_null(0).to_numpy() < bound
    return known


def _fits(groups: pa.Schema, fields: pa.Schema) -> bool:
    """Tell whether groups have the types of the columns; a name that is no column has none."""
    places = ((field, fields.get_field_index(field.name)) for field in groups)
    return all(place >= 0 and fields.field(place).type == field.type for field, place in places)


def _cast(punctuation: GroupWise, schema: Schema, place: str) -> GroupWise:
    columns, kept = [], np.ones(len(punctuation), np.bool_)
    for name, column in zip(punctuation.attributes, punctuation.groups.columns, strict=True):
        kind = _type_of(name, schema, place)
        found = exactly(column, kind)
        if found is None:
            msg = f"{place}: the groups of a punctuation by {name!r} must be {kind}; got {column.type}: cast them"
            raise ContractError(msg)
        columns.append(found[0])
        kept &= found[1]
    fields = pa.schema([schema.fields.field(name) for name in punctuation.attributes])
    return GroupWise(pa.RecordBatch.from_arrays(columns, schema=fields), punctuation.below).filter(kept)


def _type_of(name: str, schema: Schema, place: str) -> pa.DataType:
    if name not in schema.names:
        msg = f"{place}: a punctuation must be about columns of {schema}; got one about {name}"
        raise ContractError(msg)
    return schema.type_of(name)


def _check_ordered(name: str, schema: Schema, place: str) -> None:
    kind = _type_of(name, schema, place)
    if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)):
        msg = f"{place}: a joint punctuation must be about integers and timestamps; {name!r} is {kind}: leave it out"
        raise ContractError(msg)


def _kind_of(kind: pa.DataType) -> str:
    """Return the property that two types must share to have values in common."""
    if pa.types.is_timestamp(kind):  # a time without a zone is no instant, so it equals none
        return "instant in a zone" if kind.tz else "day or instant"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"list of {_kind_of(kind.value_type)}"
    if pa.types.is_struct(kind):
        return f"struct of {[(field.name, _kind_of(field.type)) for field in kind]}"
    return next(
        (name for name, members in _KINDS.items() if any(is_one(kind) for is_one in members)), str(kind)
    )


def _same(column: pa.Array, cast: pa.Array, back: pa.Array) -> NDArray[np.bool_]:
    """Tell which values have come back as they were: null, or equal as keys are; no integer by wrapping round."""
    same = pc.equal(comparable(column), comparable(back)).fill_null(False)
    if pa.types.is_integer(column.type) and pa.types.is_integer(cast.type):
        signs = (pc.less(one, pa.scalar(0, one.type)) for one in (column, cast))
        same = pc.and_(same, pc.equal(*signs).fill_null(False))
    known: NDArray[np.bool_] = pc.or_(same, column.is_null()).to_numpy(zero_copy_only=False)
    return known


def _one_by_one(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Do the same where Arrow refuses all for the sake of one, or for the room that there might have to be."""
    values, same = [], np.ones(len(column), np.bool_)
    for row, value in enumerate(column.to_pylist()):
        given = Decimal(value) if pa.types.is_decimal(kind) and value is not None else value
        try:
            values.append(pa.scalar(given, kind).as_py())
        except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, OverflowError):
            values.append(None)
        same[row] = values[row] == value
    return pa.array(values, kind), same
