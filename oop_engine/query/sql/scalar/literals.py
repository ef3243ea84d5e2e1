"""Literals: texts that are read as another type, and lengths of time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.core.errors import EngineError
from oop_engine.core.units import to_units
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.scalar.types import Typed

__all__ = ["interval_us", "literal_as"]


def literal_as(text: str, value: Typed, kind: pa.DataType, node: Any) -> Typed:
    """Return a literal text as a value of ``kind``; raises ``UsageError`` at ``node`` if it is none."""
    target = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind
    if pa.types.is_date(kind) and len(str(value.value)) > 10:
        target = pa.timestamp("us")
    try:
        scalar = pa.scalar(value.value, pa.string()).cast(
            pa.timestamp("us", "UTC")
            if pa.types.is_timestamp(target) and _has_zone(value.value)
            else (pa.timestamp("us") if pa.types.is_timestamp(target) else target)
        )
    except pa.ArrowException as error:
        raise mistake(text, node, f"{value.value!r} cannot be read as {kind}") from error
    if pa.types.is_timestamp(target):
        scalar = pa.scalar(scalar.value, target)
    return Typed(pc.scalar(scalar), scalar.type, value.value, is_literal=True)


def interval_us(text: str, node: Any) -> int:
    """Return the microseconds of an interval; raises ``UsageError`` for months, which have no length."""
    if isinstance(node, exp.Paren):
        return interval_us(text, node.this)
    if isinstance(node, exp.Neg):
        return -interval_us(text, node.this)
    if not isinstance(node, exp.Interval):
        raise mistake(text, node, "a length is wanted here: INTERVAL '90' SECOND")
    unit = "" if node.unit is None else f" {node.unit.name.lower()}"
    words = f"{node.this.name}{unit}" if isinstance(node.this, exp.Literal) else node.this.sql()
    try:
        return to_units(words.strip(), "us", "interval")
    except EngineError as error:
        raise mistake(
            text, node, f"{words!r} is no length of time: months and years differ in length"
        ) from error


def _has_zone(text: str) -> bool:
    return text.endswith(("Z", "z")) or (len(text) > 11 and ("+" in text[11:] or "-" in text[11:]))
