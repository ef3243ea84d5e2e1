"""Moments of SQL: parts of them, and the windows that they are in."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.core.close_names import did_you_mean
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.scalar.functions import MOMENTS, PARTS
from oop_engine.query.sql.scalar.literals import interval_us, scalar_as
from oop_engine.query.sql.scalar.types import Typed, cast

if TYPE_CHECKING:
    from oop_engine.query.sql.scalar.expressions import Expressions

__all__ = ["OF_MOMENTS", "ORIGIN_US", "moment_us", "origin_of"]

ORIGIN_US = 946_857_600_000_000
"""2000-01-03, a Monday, where buckets begin in DuckDB, in microseconds since 1970."""


def _singular(word: str, known: Container[str]) -> str:
    """Return the name of a unit in capitals, also of several: ``minutes``."""
    name = word.upper()
    return name.removesuffix("S") if name.removesuffix("S") in known else name


def _extracted(expressions: Expressions, node: Any) -> Typed:
    part = _singular(node.this.name, PARTS)
    if part not in PARTS:
        raise mistake(
            expressions.text,
            node,
            f"no part {part!r} of a moment; there are {', '.join(PARTS)}{did_you_mean(part, PARTS)}",
        )
    return expressions.typed(
        PARTS[part](expressions.moment(node.expression, or_length=part == "EPOCH")), node
    )


def _truncated(expressions: Expressions, node: Any) -> Typed:
    unit = _singular(node.args["unit"].name, MOMENTS)
    if unit not in MOMENTS:
        raise mistake(
            expressions.text,
            node,
            f"no unit {unit!r}; there are {', '.join(sorted(MOMENTS))}{did_you_mean(unit, MOMENTS)}",
        )
    return expressions.typed(
        pc.floor_temporal(expressions.moment(node.this).expression, unit=unit.lower()), node
    )


def _difference(expressions: Expressions, node: Any) -> Typed:
    """Return how many beginnings of a unit are between two moments; of weeks how often seven days."""
    unit = _singular(node.args["unit"].name, MOMENTS)
    if unit not in MOMENTS:
        words = f"no unit {unit!r}; there are {', '.join(sorted(MOMENTS))}{did_you_mean(unit, MOMENTS)}"
        raise mistake(expressions.text, node, words)
    start, end = (_wall_us(expressions.moment(operand)) for operand in (node.expression, node.this))
    return expressions.typed(_between(unit, start, end).cast(pa.int64()), node)


def _wall_us(moment: Typed) -> Any:
    """Return a moment in microseconds, of a zone that of UTC."""
    return cast(moment, pa.timestamp("us")).expression


def _between(unit: str, start: Any, end: Any) -> Any:
    if unit == "WEEK":
        days = pc.days_between(start, end)
        return pc.divide(days, pc.scalar(7))
    if unit == "MONTH":
        first, last = (
            pc.add(pc.multiply(pc.year(moment), pc.scalar(12)), pc.month(moment)) for moment in (start, end)
        )
        return pc.subtract(last, first)
    return getattr(pc, f"{unit.lower()}s_between")(start, end)


def _last_day(expressions: Expressions, node: Any) -> Typed:
    """Return the last day of the month of a moment."""
    days = cast(expressions.moment(node.this), pa.date32(), safe=False).expression
    after = pc.ceil_temporal(days, unit="month", ceil_is_strictly_greater=True)
    return expressions.typed(
        pc.subtract(after.cast(pa.int32()), pc.scalar(pa.scalar(1, pa.int32()))).cast(pa.date32()), node
    )


def _at_zone(expressions: Expressions, node: Any) -> Typed:
    """Return the local time of a moment, or the moment of a local time."""
    return expressions.of(exp.Anonymous(this="AT_TIME_ZONE", expressions=[node.this, node.args["zone"]]))


def _bucketed(expressions: Expressions, node: Any) -> Typed:
    """Return the start of the window that a moment is in; windows begin on 2000-01-03, as in DuckDB."""
    width, moment = interval_us(expressions.text, node.this), expressions.moment(node.expression)
    is_day = pa.types.is_date(moment.kind)
    whole = cast(moment, pa.timestamp("us", None if is_day else moment.kind.tz))
    given = origin_of(node)
    origin = ORIGIN_US if given is None else moment_us(expressions.text, given)
    number = pc.subtract(whole.expression.cast(pa.int64()), pc.scalar(origin))
    rest = pc.subtract(number, pc.multiply(_floored(number, width), pc.scalar(width)))
    start = pc.subtract(pc.add(number, pc.scalar(origin)), rest)
    bucket = Typed(start.cast(whole.kind), whole.kind)
    return cast(bucket, pa.date32(), safe=False) if is_day else bucket


def origin_of(node: Any) -> Any:
    """Return the third argument of ``time_bucket``, or None."""
    return node.args.get("origin") or node.args.get("unit")


def moment_us(text: str, node: Any) -> int:
    """Return a moment that is written as a literal, in microseconds; an interval moves the usual origin."""
    if isinstance(node, exp.Interval):
        return ORIGIN_US + interval_us(text, node)
    inner = node.this if isinstance(node, exp.Cast) else node
    if not isinstance(inner, exp.Literal) or not inner.is_string:
        raise mistake(text, node, "the origin of time_bucket is a literal: TIMESTAMP '2026-01-01 00:00:07'")
    return int(scalar_as(text, inner.name, pa.timestamp("us"), node).value)


def _floored(number: Any, width: int) -> Any:
    """Return number / width, rounded down."""
    quotient = pc.divide(number, pc.scalar(width))
    short = pc.less(number, pc.multiply(quotient, pc.scalar(width)))
    return pc.subtract(quotient, short.cast(pa.int64()))


OF_MOMENTS: dict[Any, Any] = {
    exp.Extract: _extracted,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateBin: _bucketed,
    exp.DateDiff: _difference,
    exp.LastDay: _last_day,
    exp.AtTimeZone: _at_zone,
}
"""Functions of moments by the classes of the parser."""
