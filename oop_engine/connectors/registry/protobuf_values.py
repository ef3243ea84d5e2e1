"""Protobuf values: fields of messages as values of Python, which become columns by the rules of all formats."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["value_of"]

_MESSAGE, _ENUM = 11, 14
"""Numbers of types of fields in ``google.protobuf.descriptor``."""


def value_of(message: Any, field: Any, kind: pa.DataType | None) -> Any:
    """Return the value of a field of a message; of a field that has presence and is not there, None.

    ``kind``: the declared type, whose fields are taken of a nested message; None: all are.
    """
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        item = field.message_type.fields_by_name["value"]
        inner = kind.item_type if kind is not None and pa.types.is_map(kind) else None
        return {key: _one(value[key], item, inner) for key in value}
    if field.is_repeated:
        inner = kind.value_type if kind is not None and _is_list(kind) else None
        return [_one(each, field, inner) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _one(value, field, kind)


def _one(value: Any, field: Any, kind: pa.DataType | None) -> Any:
    if field.type == _ENUM:
        there = field.enum_type.values_by_number.get(value)
        return str(value) if there is None else there.name
    if field.type != _MESSAGE and field.message_type is None:
        return value
    message_type = field.message_type
    if (make := _KNOWN.get(message_type.full_name)) is not None:
        return make(value)
    if message_type.full_name in _WRAPPERS:
        return value.value
    names = [each.name for each in kind] if kind is not None and pa.types.is_struct(kind) else None
    kinds = {} if kind is None or names is None else {each.name: each.type for each in kind}
    wanted = (
        message_type.fields
        if names is None
        else [message_type.fields_by_name[n] for n in names if n in message_type.fields_by_name]
    )
    return {each.name: value_of(value, each, kinds.get(each.name)) for each in wanted}


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_nested(kind) and not (pa.types.is_struct(kind) or pa.types.is_map(kind))


def _moment(value: Any) -> str:
    """Return a moment in UTC as text, with as many digits as it needs."""
    digits = f"{value.nanos:09d}".rstrip("0")
    return f"{np.datetime64(value.seconds, 's')}{'.' if digits else ''}{digits}Z"


def _length(value: Any) -> Any:
    """Return a length of time; as text, which nothing reads, where NumPy has no such one."""
    nanoseconds = value.seconds * 10**9 + value.nanos
    fits = abs(nanoseconds) < 2**63
    return np.timedelta64(nanoseconds, "ns") if fits else f"{value.seconds} s {value.nanos} ns"


def _date(value: Any) -> Any:
    try:
        return date(value.year, value.month, value.day)
    except ValueError:
        return f"{value.year}-{value.month}-{value.day}"


def _time_of_day(value: Any) -> str:
    return f"{value.hours:02d}:{value.minutes:02d}:{value.seconds:02d}.{value.nanos:09d}"


def _decimal(value: Any) -> Decimal:
    """Return a decimal of Confluent: a whole number of any length in two's complement, and its scale."""
    whole = int.from_bytes(value.value, "big", signed=True)
    sign, digits, _ = Decimal(whole).as_tuple()
    return Decimal((sign, digits, -value.scale))


_KNOWN: dict[str, Callable[[Any], Any]] = {
    "google.protobuf.Timestamp": _moment,
    "google.protobuf.Duration": _length,
    "google.type.Date": _date,
    "google.type.TimeOfDay": _time_of_day,
    "google.type.Decimal": lambda value: value.value,
    "confluent.type.Decimal": _decimal,
}
_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
