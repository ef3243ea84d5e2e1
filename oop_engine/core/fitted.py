"""Fitted: punctuation cast to the types of its stream.

Whoever makes punctuation by hand leaves the types of keys to Arrow: a ``datetime`` becomes microseconds, a
number 64 bits.  Keys are found by their values, so they must be of the stream's types before an operator sees them.
Runners pass every message through here, and keys become values of their columns as those of rows do (``values``).
"""

from __future__ import annotations

from dataclasses import replace
from reprlib import repr as _short
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError
from oop_engine.core.groups.group_index import comparable
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Watermark
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrays import converted
from oop_engine.core.values.column import misfit
from oop_engine.core.values.kinds import converts

__all__ = ["check_bound", "fitted", "is_below", "once_each"]

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
            for name, below in _pairs(message.bounds, place):
                _check_ordered(name, schema, place)
                check_bound(place, below)
        case Watermark(GroupWise() as bounds):
            return replace(message, of=fitted(bounds, schema, place))
        case Watermark(Linear(below)):
            check_bound(place, below)
        case Watermark(other):
            got = " ".join(_short(other).split())
            msg = f"{place}: a watermark must be of a Linear or a GroupWise; got {got}: write Watermark(Linear(60))"
            raise ContractError(msg)
    return message


def _pairs(bounds: object, place: str) -> tuple[tuple[str, int], ...]:
    """Return the bounds of a ``Joint``; raise ``ContractError`` unless they are pairs of an attribute and a bound."""
    pairs = isinstance(bounds, tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in bounds)
    if not bounds or not pairs:
        got = " ".join(_short(bounds).split())
        msg = f"{place}: the bounds of a Joint must be pairs, Joint((('ts', 60), ('id', 7))); got {got}"
        raise ContractError(msg)
    return bounds  # type: ignore[return-value]


def check_bound(place: str, below: object) -> None:
    """Raise ``ContractError`` in the name of ``place`` unless a bound is an integer of 64 bits."""
    whole = isinstance(below, int | np.integer) and not isinstance(below, bool | np.timedelta64)
    if not (whole and NEVER <= below <= FOREVER):  # type: ignore[operator]
        got, way_out = " ".join(_short(below).split()), "schema.instant(value, 'bound') makes one of a moment"
        msg = f"{place}: the bound of a punctuation must be an integer of 64 bits; got {got}: {way_out}"
        raise ContractError(msg)


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
    """Return whether a column is of integers that all differ."""
    if not pa.types.is_integer(column.type) or column.null_count:
        return False
    values = np.sort(column.to_numpy())
    return bool((values[1:] > values[:-1]).all())


def is_below(column: pa.Array, bound: int) -> NDArray[np.bool_]:
    """Return which values of a column of integers or instants are below ``bound``, bool (rows,); null is not.

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
    """Return whether groups have the types of the columns; a name that is no column has none."""
    places = ((field, fields.get_field_index(field.name)) for field in groups)
    return all(place >= 0 and fields.field(place).type == field.type for field, place in places)


def _cast(punctuation: GroupWise, schema: Schema, place: str) -> GroupWise:
    columns, fits = [], np.ones(len(punctuation), np.bool_)
    for name, column in zip(punctuation.attributes, punctuation.groups.columns, strict=True):
        kind = _type_of(name, schema, place)
        if not converts(column.type, kind):
            msg = f"{place}: the groups of a punctuation by {name!r} must be {misfit(kind, column.type)}"
            raise ContractError(msg)
        values, lost = converted(column, kind)
        columns.append(values)
        if lost is not None:
            fits &= ~lost.to_numpy(zero_copy_only=False)
    fields = pa.schema([schema.fields.field(name) for name in punctuation.attributes])
    return GroupWise(pa.RecordBatch.from_arrays(columns, schema=fields), punctuation.below).filter(fits)


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
