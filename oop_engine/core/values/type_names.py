"""Type names: the types of Arrow by the texts that people write for them."""

from __future__ import annotations

import re

import pyarrow as pa

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError

__all__ = ["type_named"]

_PLAIN = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
          "string", "large_string", "binary", "date32", "date64", "timestamp")  # fmt: skip
_KNOWN = "int64, float64, string, bool, date32, timestamp, timestamp[us, UTC], decimal(10,2)"


def type_named(text: str, place: str = "a type") -> pa.DataType:
    """Return the type that a text names; raises ``UsageError`` in the name of ``place`` if there is none such.

    >>> type_named("timestamp[ms, UTC]"), type_named("decimal(10,2)")
    (TimestampType(timestamp[ms, tz=UTC]), Decimal128Type(decimal128(10, 2)))
    """
    if parts := re.fullmatch(r"timestamp(?:\[(s|ms|us|ns)(?:, ?(?:tz=)?([\w/+:-]+))?\])?", text):
        return pa.timestamp(parts[1] or "us", parts[2])
    if parts := re.fullmatch(r"decimal(?:128)?\(([0-9]{1,2}), ?([0-9]{1,2})\)", text):
        return pa.decimal128(int(parts[1]), int(parts[2]))
    try:
        return pa.type_for_alias(text)
    except ValueError:
        msg = f"{place}: must be a type such as {_KNOWN}; got {text!r}{did_you_mean(text, _PLAIN)}"
        raise UsageError(msg) from None
