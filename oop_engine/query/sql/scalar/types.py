"""Types of SQL: an expression with its type, the type that a name means, and the common type of several values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.query.sql.scalar.shown import shown

__all__ = [
    "Typed",
    "as_columns",
    "cast",
    "common",
    "declared",
    "is_number",
    "is_text",
    "is_time",
    "literal",
    "named",
    "rounded",
    "to_common",
]

MOMENT = pa.timestamp("us")
_WHOLE_FLOAT = 2.0**53
_EXACT_DIGITS = 15  # so many digits are an integer that a float holds, as is a power of ten
_NAMES = {
    "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(), "INT128": pa.int64(),
    "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINT": pa.uint32(), "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_(), "VARCHAR": pa.string(), "TEXT": pa.string(),
    "CHAR": pa.string(), "DATE": pa.date32(), "TIMESTAMP": MOMENT, "TIMESTAMPNTZ": MOMENT, "DATETIME": MOMENT,
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"), "TIMESTAMPLTZ": pa.timestamp("us", "UTC"), "VARBINARY": pa.binary(),
    "BINARY": pa.binary(), "TIMESTAMP_S": pa.timestamp("s"), "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
}  # fmt: skip


@dataclass(frozen=True)
class Typed:
    """An expression of Arrow and its type; ``value`` is that of a literal."""

    expression: Any
    kind: pa.DataType
    value: Any = None
    is_literal: bool = False


def literal(value: Any, kind: pa.DataType) -> Typed:
    """Return a value as an expression."""
    return Typed(pc.scalar(pa.scalar(value, kind)), kind, value, is_literal=True)


def named(node: Any) -> pa.DataType | None:
    """Return the type that SQL's name means; None: there is none such here."""
    name = node.this.name if hasattr(node.this, "name") else str(node.this)
    if name == "DECIMAL":
        sizes = [int(part.name) for part in node.expressions]
        return pa.decimal128(*[*sizes, 0][:2]) if sizes else pa.decimal128(18, 3)
    return _NAMES.get(name)


def declared(node: Any) -> pa.DataType | None:
    """Return the type of a column of CREATE TABLE, also ``STRUCT``, ``MAP`` and lists; None: there is none such."""
    kinds = exp.DataType.Type
    if node.this not in (kinds.STRUCT, kinds.ARRAY, kinds.MAP):
        return named(node)
    parts = [
        declared(part.args["kind"] if isinstance(part, exp.ColumnDef) else part) for part in node.expressions
    ]
    names = [part.name for part in node.expressions]
    if None in parts or not parts:
        return None
    if node.this == kinds.ARRAY:
        return pa.list_(parts[0])
    if node.this == kinds.MAP:
        return pa.map_(*parts)
    return pa.struct(list(zip(names, parts, strict=True))) if len(set(names)) == len(names) else None


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of a type can be reckoned with."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of a type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_time(kind: pa.DataType) -> bool:
    """Return whether values of a type are moments or days."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def common(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the type that values of all ``kinds`` can be compared in; None: there is none.

    >>> common([pa.int64(), pa.float32()]), common([pa.date32(), pa.timestamp("us")])
    (DataType(float), TimestampType(timestamp[us]))
    """
    known_kinds = list(dict.fromkeys(kind for kind in kinds if not pa.types.is_null(kind)))
    if len(known_kinds) < 2:
        return known_kinds[0] if known_kinds else pa.int32()
    if all(map(is_number, known_kinds)):
        return _number(known_kinds)
    times = [kind for kind in known_kinds if is_time(kind)]
    if times and all(is_time(kind) or is_text(kind) for kind in known_kinds):
        return _moment(times, texts=len(times) < len(known_kinds))
    if all(map(is_text, known_kinds)):
        return pa.string()
    return None


def to_common(values: Sequence[Typed]) -> list[Typed] | None:
    """Return values in their common type; None: there is none."""
    kind = common([value.kind for value in values])
    return None if kind is None else [cast(value, kind) for value in values]


def as_columns(values: Sequence[Typed]) -> list[Typed]:
    """Return values with the literals beside floats of 32 bits as such, so that a column of them may equal 0.1."""
    floats = {value.kind for value in values if pa.types.is_floating(value.kind) and not value.is_literal}
    return [
        literal(value.value, pa.float32())
        if floats == {pa.float32()} and value.is_literal and pa.types.is_floating(value.kind)
        else value
        for value in values
    ]


def cast(value: Typed, kind: pa.DataType, *, safe: bool = True) -> Typed:
    """Return a value as another type."""
    if value.kind == kind:
        return value
    if pa.types.is_null(value.kind):
        return literal(None, kind)
    if is_text(kind) and (text := shown(value.expression, value.kind)) is not None:
        return Typed(text.cast(kind), kind)
    expression = value.expression
    if pa.types.is_timestamp(value.kind) and value.kind.tz and pa.types.is_timestamp(kind) and not kind.tz:
        expression = expression.cast(pa.timestamp(kind.unit, "UTC"))
    if is_text(value.kind) and pa.types.is_timestamp(kind) and kind.tz is None:
        # a text with or without an offset: the wall clock of UTC
        return Typed(expression.cast(kind), kind)
    if pa.types.is_boolean(value.kind) and pa.types.is_decimal(kind):
        return cast(Typed(expression.cast(pa.int8()), pa.int8()), kind)
    if pa.types.is_decimal(value.kind) and pa.types.is_boolean(kind):
        return Typed(pc.not_equal(expression, literal(Decimal(0), value.kind).expression), kind)
    if pa.types.is_integer(value.kind) and pa.types.is_decimal(kind):
        expression = expression.cast(pa.decimal128(38, kind.scale))
    if pa.types.is_decimal(value.kind) and pa.types.is_floating(kind):
        expression = _float_of(expression, value.kind)
    if pa.types.is_integer(value.kind) and pa.types.is_floating(kind):
        safe = False  # the nearest float of an integer beyond 2^53, as in SQL
    options = pc.CastOptions(kind) if safe else pc.CastOptions.unsafe(kind)
    return Typed(expression.cast(options=options), kind)


def rounded(value: Typed, places: int, mode: str) -> Any:
    """Return a number with so many digits; a large float has no fraction, and Arrow's rounding would overflow."""
    number = value.expression
    if places < 0 or not pa.types.is_floating(value.kind):
        return pc.round(number, places, round_mode=mode)
    is_small = pc.less(pc.abs(number), pc.scalar(pa.scalar(_WHOLE_FLOAT, value.kind)))
    small = pc.if_else(is_small, number, pc.scalar(pa.scalar(0.0, value.kind)))
    return pc.if_else(is_small, pc.round(small, places, round_mode=mode), number)


def _float_of(expression: Any, kind: pa.DataType) -> Any:
    """Return the nearest float of a decimal: Arrow's own cast is beside it by a digit in a third of all values."""
    if not 0 <= kind.scale <= kind.precision <= _EXACT_DIGITS:
        return expression.cast(pa.string()).cast(pa.float64())
    ten = pa.scalar(10**kind.scale, pa.decimal128(kind.scale + 1, 0))
    digits = pc.multiply(expression, pc.scalar(ten)).cast(pa.int64()).cast(pa.float64())
    return pc.divide(digits, pc.scalar(10.0**kind.scale))


def _number(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if floats := list(filter(pa.types.is_floating, kinds)):
        return pa.float32() if set(floats) == {pa.float32()} else pa.float64()
    decimals = [kind for kind in kinds if pa.types.is_decimal(kind)]
    if decimals:
        scale = max(kind.scale for kind in decimals)
        whole = max([kind.precision - kind.scale for kind in decimals] + [19] * (len(decimals) < len(kinds)))
        return pa.decimal128(min(whole + scale, 38), scale)
    return pa.uint64() if all(map(pa.types.is_unsigned_integer, kinds)) else pa.int64()


def _moment(kinds: Sequence[pa.DataType], *, texts: bool) -> pa.DataType:
    moments = [kind for kind in kinds if pa.types.is_timestamp(kind)]
    if not moments:
        return pa.date32() if not texts else MOMENT
    zone = next((kind.tz for kind in moments if kind.tz), None)
    units = ("s", "ms", "us", "ns")
    finest = max(units.index(kind.unit) for kind in moments)
    return pa.timestamp(units[max(finest, 2)] if texts or len(moments) < len(kinds) else units[finest], zone)
