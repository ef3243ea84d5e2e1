"""Literals: texts that are read as another type, and lengths of time."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, DecimalException
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.core.errors import EngineError
from oop_engine.core.units import to_units
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.scalar.types import Typed

__all__ = ["interval_us", "literal_as", "scalar_as"]


def literal_as(text: str, value: Typed, kind: pa.DataType, node: Any) -> Typed:
    """Return a literal text as a value of ``kind``; raises ``UsageError`` at ``node`` if it is none."""
    scalar = scalar_as(text, str(value.value), kind, node)
    return Typed(pc.scalar(scalar), scalar.type, value.value, is_literal=True)


def scalar_as(text: str, literal_text: str, kind: pa.DataType, node: Any) -> Any:
    """Return a text as a scalar of ``kind``, a moment in microseconds; raises ``UsageError`` at ``node``."""
    is_day = pa.types.is_date(kind) and len(literal_text) > 10
    target = pa.timestamp("us", getattr(kind, "tz", None)) if pa.types.is_timestamp(kind) or is_day else kind
    is_moment = pa.types.is_timestamp(target)
    if pa.types.is_decimal(target):
        return _decimal(text, literal_text, target, node)
    plain = pa.timestamp("us", "UTC" if _has_zone(literal_text) else None) if is_moment else target
    try:
        scalar = pa.scalar(literal_text, pa.string()).cast(plain)
    except pa.ArrowException as error:
        raise mistake(text, node, f"{literal_text!r} cannot be read as {kind}{_as_written(kind)}") from error
    return pa.scalar(scalar.value, target) if is_moment else scalar


def _decimal(text: str, literal_text: str, kind: pa.DataType, node: Any) -> Any:
    """Return a text as a decimal, rounded to the digits of ``kind``."""
    try:
        rounded = Decimal(literal_text.strip()).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)
        return pa.scalar(rounded, kind)
    except (DecimalException, pa.ArrowException) as error:
        raise mistake(text, node, f"{literal_text!r} cannot be read as {kind}{_as_written(kind)}") from error


def interval_us(text: str, node: Any) -> int:
    """Return the microseconds of an interval; raises ``UsageError`` for months, which have no length."""
    if isinstance(node, exp.Paren):
        return interval_us(text, node.this)
    if isinstance(node, exp.Neg):
        return -interval_us(text, node.this)
    if isinstance(node, exp.Literal) and node.is_string:
        node = exp.Interval(this=node)
    if not isinstance(node, exp.Interval):
        raise mistake(text, node, "a length is wanted here: INTERVAL '90' SECOND")
    unit = "" if node.unit is None else f" {node.unit.name.lower()}"
    words = f"{node.this.name}{unit}" if isinstance(node.this, exp.Literal) else node.this.sql()
    try:
        return to_units(words.strip(), "us", "interval")
    except EngineError as error:
        raise mistake(
            text,
            node,
            f"{words!r} is no length of time: months and years differ in length; take days, or, over files, "
            "GROUP BY date_trunc('month', ts)",
        ) from error


def _has_zone(text: str) -> bool:
    return text.endswith(("Z", "z")) or (len(text) > 11 and ("+" in text[11:] or "-" in text[11:]))


def _as_written(kind: pa.DataType) -> str:
    """Return how moments are written, as the end of a message; nothing for other values."""
    if pa.types.is_timestamp(kind):
        return ": write '2026-01-31 12:00:00', or strptime('31.01.2026 12:00', '%d.%m.%Y %H:%M')"
    return ": write '2026-01-31'" if pa.types.is_date(kind) else ""
