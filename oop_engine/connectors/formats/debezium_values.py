"""Debezium values: fields of a row as texts that a declared type reads, by the types that Debezium names.

With a schema part each field has a name such as ``io.debezium.time.MicroTimestamp``.  Without one a number in a column
of days, times or moments is in the unit of the column.  Source: the Debezium documentation, "Data type mappings".
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.values.declared_values import MisfitError
from oop_engine.core.values.kinds import is_number
from oop_engine.traces.formats.json_rows import leaf as json_leaf

__all__ = ["UNAVAILABLE", "Named", "debezium_leaf", "named_fields", "with_name"]

UNAVAILABLE = "__debezium_unavailable_value"
"""In place of a long value that the update has not changed, and the server has not sent."""
Named = Mapping[str, Mapping[str, Any]]
"""The descriptions of fields, by name."""
_MOMENTS = {
    "io.debezium.time.Timestamp": "ms", "io.debezium.time.MicroTimestamp": "us", "io.debezium.time.NanoTimestamp": "ns",
    "org.apache.kafka.connect.data.Timestamp": "ms",
}  # fmt: skip
_TIMES = {
    "io.debezium.time.Time": "ms", "io.debezium.time.MicroTime": "us", "io.debezium.time.NanoTime": "ns",
    "org.apache.kafka.connect.data.Time": "ms",
}  # fmt: skip
_DAYS = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
_DECIMAL, _VARIABLE = "org.apache.kafka.connect.data.Decimal", "io.debezium.data.VariableScaleDecimal"


def named_fields(schema: Any, part: str) -> Named:
    """Return the descriptions of the fields of ``before`` or ``after`` in the schema part of a message.

    >>> schema = {"fields": [{"field": "after", "fields": [{"field": "d", "name": "io.debezium.time.Date"}]}]}
    >>> named_fields(schema, "after")
    {'d': {'field': 'd', 'name': 'io.debezium.time.Date'}}
    """
    fields = schema.get("fields") if isinstance(schema, Mapping) else None
    for each in fields if isinstance(fields, list) else ():
        if isinstance(each, Mapping) and each.get("field") == part and isinstance(each.get("fields"), list):
            return {
                field["field"]: field
                for field in each["fields"]
                if isinstance(field, Mapping) and "field" in field
            }
    return {}


def with_name(value: Any, about: Mapping[str, Any] | None, place: str) -> Any:
    """Return a value as text, if its description names a type that needs that; raises ``MisfitError``.

    >>> with_name("fQ==", {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}, "sum")
    '1.25'
    >>> with_name(1_500_000, {"name": "io.debezium.time.MicroTimestamp"}, "at")
    '1970-01-01T00:00:01.500000'
    """
    if value is None or about is None:
        return value
    name = about.get("name")
    try:
        if name in _MOMENTS:
            return moment_text(int(value), _MOMENTS[name])
        if name in _TIMES:
            return time_text(int(value), _TIMES[name])
        if name in _DAYS:
            return moment_text(int(value), "D")
        if name == _DECIMAL and not isinstance(value, int | float) and not isinstance(value, Decimal):
            return decimal_text(value, int((about.get("parameters") or {})["scale"]))
        if about.get("type") == "bytes" and isinstance(value, str):
            return b64decode(value, validate=True)
    except (ValueError, LookupError, TypeError, Base64Error) as error:
        raise MisfitError(place, value, name or about.get("type")) from error
    return value


def debezium_leaf(value: Any, kind: pa.DataType, path: str) -> Any:
    """Return a value as ``declared_value`` is given it: numbers of days, times and moments as texts."""
    types = pa.types
    if isinstance(value, Mapping) and types.is_decimal(kind) and {*value} == {"scale", "value"}:
        return decimal_text(value["value"], int(value["scale"]))
    if isinstance(value, bytes):
        return value
    if is_a_number(value):
        for test, text in _BY_TYPE:
            if test(kind):
                return text(int(value), kind)
    if types.is_binary(kind) and isinstance(value, str):
        try:
            return b64decode(value, validate=True)
        except Base64Error as error:
            raise MisfitError(path, value, kind) from error
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and is_number(kind):
        return value
    return json_leaf(value, kind, path)


def is_a_number(value: Any) -> bool:
    """Return whether a value is a whole number, as JSON has it, or Python."""
    is_text_of_one = isinstance(value, str) and type(value) is not str and value.lstrip("-").isdecimal()
    return is_text_of_one or (isinstance(value, int) and not isinstance(value, bool))


def moment_text(value: int, unit: Any) -> str:
    """Return a moment without a zone as text; ``unit``: as NumPy has it, ``D`` for days."""
    return str(np.datetime64(value, unit))


def time_text(value: int, unit: str) -> str:
    """Return a time of day as text.

    >>> time_text(3_661_000_001, "us")
    '01:01:01.000001'
    """
    return moment_text(value, unit).partition("T")[2] if value >= 0 else str(value)


def decimal_text(value: Any, scale: int) -> str:
    """Return a decimal as text: a whole number of any length in two's complement (Base64, or bytes), and its scale."""
    data = value if isinstance(value, bytes) else b64decode(value, validate=True)
    sign, digits, _ = Decimal(int.from_bytes(data, "big", signed=True)).as_tuple()
    return f"{Decimal((sign, digits, -scale)):f}"


def _zoned(value: int, kind: pa.DataType) -> str:
    return moment_text(value, kind.unit) + ("Z" if kind.tz else "")


_BY_TYPE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[int, pa.DataType], str]], ...] = (
    (pa.types.is_timestamp, _zoned),
    (pa.types.is_date, lambda value, kind: moment_text(value, "D")),
    (pa.types.is_time, lambda value, kind: time_text(value, kind.unit)),
)
