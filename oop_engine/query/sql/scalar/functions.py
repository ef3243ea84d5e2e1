"""Scalar functions of SQL, by their names, as expressions of Arrow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.query.sql.scalar.parsed_moments import MADE_MOMENTS
from oop_engine.query.sql.scalar.shown import in_format
from oop_engine.query.sql.scalar.text_functions import TEXT_FUNCTIONS, known
from oop_engine.query.sql.scalar.types import Typed, cast, is_text, is_time, literal, rounded, to_common

__all__ = ["FUNCTIONS", "MOMENTS", "PARTS", "case_of", "divided", "remainder", "whole_quotient"]

Function = Callable[..., Any]
_WHOLE_DIGITS = 18  # of a decimal that fits 64 bits


def divided(a: Typed, b: Typed) -> Any:
    """Return a / b in floats; infinite or NaN where b is 0."""
    return pc.divide(cast(a, pa.float64()).expression, cast(b, pa.float64()).expression)


def whole_quotient(a: Typed, b: Typed) -> Any:
    """Return the quotient without its fraction; null where b is 0."""
    if pa.types.is_decimal(a.kind) or pa.types.is_decimal(b.kind):
        msg = "// of decimals is not exact: cast them to BIGINT or DOUBLE"
        raise ValueError(msg)
    if pa.types.is_floating(a.kind) or pa.types.is_floating(b.kind):
        return pc.trunc(divided(a, b)).cast(pa.int64())
    left, right = cast(a, pa.int64()).expression, cast(b, pa.int64()).expression
    return pc.divide_checked(left, _no_zero(right, pa.int64()))


def remainder(a: Typed, b: Typed) -> Any:
    """Return the rest of a division, with the sign of a; null where b is 0."""
    if pa.types.is_floating(a.kind) or pa.types.is_floating(b.kind):
        left, right = cast(a, pa.float64()).expression, cast(b, pa.float64()).expression
        whole = pc.trunc(pc.divide(left, _no_zero(right, pa.float64())))
        return pc.subtract(left, pc.multiply(whole, _no_zero(right, pa.float64())))
    if pa.types.is_decimal(a.kind) or pa.types.is_decimal(b.kind):
        return _remainder_of_decimals(a, b)
    left = cast(a, pa.int64()).expression
    right = _no_zero(cast(b, pa.int64()).expression, pa.int64())
    return pc.subtract(left, pc.multiply(pc.divide(left, right), right))


def _remainder_of_decimals(a: Typed, b: Typed) -> Any:
    """Return the rest of a division of decimals, in integers of the last digit of both."""
    both = to_common([a, b])
    assert both is not None
    kind = both[0].kind
    if max(operand.kind.precision for operand in (a, b) if pa.types.is_decimal(operand.kind)) > _WHOLE_DIGITS:
        msg = f"the remainder of decimals with more than {_WHOLE_DIGITS} digits is not exact: cast them to DOUBLE"
        raise ValueError(msg)
    ten = pc.scalar(pa.scalar(10**kind.scale, pa.decimal128(kind.scale + 1, 0)))
    narrow = pa.decimal128(_WHOLE_DIGITS, kind.scale)
    digits = [
        Typed(pc.multiply_checked(cast(operand, narrow).expression, ten).cast(pa.int64()), pa.int64())
        for operand in both
    ]
    rest = cast(Typed(remainder(*digits), pa.int64()), pa.decimal128(19, 0)).expression
    last = pa.scalar(Decimal(1).scaleb(-kind.scale), pa.decimal128(kind.scale + 1, kind.scale))
    return pc.multiply_checked(rest, pc.scalar(last))


def case_of(conditions: Sequence[Any], values: Sequence[Any]) -> Any:
    """Return the value of the first condition that is true; one more value is that of none."""
    expression = values[-1]
    for condition, value in zip(reversed(conditions), reversed(values[: len(conditions)]), strict=True):
        expression = pc.if_else(pc.coalesce(condition, pc.scalar(False)), value, expression)
    return expression


def _no_zero(value: Any, kind: pa.DataType) -> Any:
    return pc.if_else(pc.equal(value, pc.scalar(pa.scalar(0, kind))), pc.scalar(pa.scalar(None, kind)), value)


def _float(value: Typed) -> Any:
    return cast(value, pa.float64()).expression


def _rounded(value: Typed, digits: Typed | None = None) -> Any:
    places = 0 if digits is None else int(known(digits, "the digits of round"))
    if pa.types.is_integer(value.kind) and places >= 0:
        return value.expression
    return rounded(value, places, "half_towards_infinity")


def _alike(values: Sequence[Typed]) -> list[Typed]:
    """Return values in their common type; raises ``ValueError`` if they have none."""
    if (alike := to_common(values)) is None:
        kinds = " and ".join(dict.fromkeys(str(value.kind) for value in values))
        msg = f"{kinds} have no type in common: cast one, CAST(x AS ...)"
        raise ValueError(msg)
    return alike


def _greatest(*values: Typed) -> Any:
    return _by_element(pc.max_element_wise, _alike(values))


def _least(*values: Typed) -> Any:
    return _by_element(pc.min_element_wise, _alike(values))


def _by_element(choose: Function, values: Sequence[Typed]) -> Any:
    """Return the greatest or least of each row; of moments by their numbers, for Arrow compares none with a zone."""
    kind = values[0].kind
    if not pa.types.is_timestamp(kind):
        return choose(*(value.expression for value in values), skip_nulls=True)
    return choose(*(value.expression.cast(pa.int64()) for value in values), skip_nulls=True).cast(kind)


def _coalesce(*values: Typed) -> Any:
    return pc.coalesce(*(value.expression for value in _alike(values)))


def _null_if(a: Typed, b: Typed) -> Any:
    both = _alike([a, b])
    same = pc.coalesce(pc.equal(both[0].expression, both[1].expression), pc.scalar(False))
    first = both[0] if pa.types.is_null(a.kind) else a
    return pc.if_else(same, literal(None, first.kind).expression, first.expression)


def _of_float(function: Function) -> Function:
    return lambda value: function(_float(value))


def _same(function: Function) -> Function:
    return lambda value: function(value.expression)


def _whole_as_it_is(function: Function) -> Function:
    """Return a rounding that leaves integers as they are."""
    return lambda value: value.expression if pa.types.is_integer(value.kind) else function(value.expression)


def _epoch(value: Typed, unit: str) -> Any:
    moment = value if pa.types.is_timestamp(value.kind) else cast(value, pa.timestamp("us"))
    return moment.expression.cast(options=pc.CastOptions.unsafe(_with_unit(moment.kind, unit))).cast(
        pa.int64()
    )


def _with_unit(kind: pa.DataType, unit: str) -> pa.DataType:
    return pa.timestamp(unit, kind.tz)


def _to_moment(unit: str) -> Function:
    return lambda value: cast(value, pa.int64()).expression.cast(pa.timestamp(unit))


def _seconds(value: Typed) -> Any:
    """Return the seconds since 1970, or those of a length of time."""
    if pa.types.is_duration(value.kind):
        micros = value.expression.cast(pa.duration("us")).cast(pa.int64())
        return pc.divide(micros.cast(pa.float64()), pc.scalar(1e6))
    moment = value if pa.types.is_timestamp(value.kind) else cast(value, pa.timestamp("us"))
    micros = moment.expression.cast(_with_unit(moment.kind, "us")).cast(pa.int64())
    return pc.divide(micros.cast(pa.float64()), pc.scalar(1e6))


def _formatted(moment: Typed, format: Typed) -> Any:
    if moment.is_literal and is_text(moment.kind):
        moment, format = format, moment
    if not is_time(moment.kind):
        msg = f"a moment and a format are wanted; got {moment.kind}"
        raise ValueError(msg)
    return in_format(moment.expression, moment.kind, str(known(format, "a format")))


PARTS: dict[str, Function] = {
    "YEAR": lambda t: pc.year(t.expression),
    "MONTH": lambda t: pc.month(t.expression),
    "DAY": lambda t: pc.day(t.expression),
    "HOUR": lambda t: pc.hour(t.expression),
    "MINUTE": lambda t: pc.minute(t.expression),
    "SECOND": lambda t: pc.second(t.expression),
    "MILLISECOND": lambda t: pc.divide(_micros_of_minute(t), pc.scalar(1000)),
    "MICROSECOND": lambda t: _micros_of_minute(t),
    "QUARTER": lambda t: pc.quarter(t.expression),
    "WEEK": lambda t: pc.iso_week(t.expression),
    "ISOYEAR": lambda t: pc.iso_year(t.expression),
    "YEARWEEK": lambda t: pc.add(
        pc.multiply(pc.iso_year(t.expression), pc.scalar(100)), pc.iso_week(t.expression)
    ),
    "DOW": lambda t: pc.day_of_week(t.expression, count_from_zero=True, week_start=7),
    **dict.fromkeys(
        ("DAYOFWEEK", "WEEKDAY"),
        lambda t: pc.day_of_week(t.expression, count_from_zero=True, week_start=7),
    ),
    "ISODOW": lambda t: pc.day_of_week(t.expression, count_from_zero=False, week_start=1),
    "DOY": lambda t: pc.day_of_year(t.expression),
    "DAYOFYEAR": lambda t: pc.day_of_year(t.expression),
    "EPOCH": _seconds,
}
"""Parts of a moment, as ``extract`` has them."""

MOMENTS = {
    "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR",
}  # fmt: skip
"""Units of ``date_trunc``."""


def _micros_of_minute(t: Typed) -> Any:
    return pc.add(
        pc.multiply(pc.second(t.expression), pc.scalar(1_000_000)),
        pc.add(pc.multiply(pc.millisecond(t.expression), pc.scalar(1000)), pc.microsecond(t.expression)),
    )


FUNCTIONS: dict[str, Function] = {
    "IS_NAN": lambda v: pc.is_nan(_float(v)),
    "ISNAN": lambda v: pc.is_nan(_float(v)),
    "ISFINITE": lambda v: pc.is_finite(_float(v)),
    "IS_INF": lambda v: pc.is_inf(_float(v)),
    "ABS": _same(pc.abs_checked),
    "SIGN": lambda v: pc.sign(v.expression).cast(pa.int8()),
    "FLOOR": _whole_as_it_is(pc.floor),
    "CEIL": _whole_as_it_is(pc.ceil),
    "ROUND": _rounded,
    "TRUNC": _whole_as_it_is(pc.trunc),
    "SQRT": _of_float(pc.sqrt),
    "EXP": _of_float(pc.exp),
    "LN": _of_float(pc.ln),
    "LOG10": _of_float(pc.log10),
    "LOG2": _of_float(pc.log2),
    "SIN": _of_float(pc.sin),
    "COS": _of_float(pc.cos),
    "TAN": _of_float(pc.tan),
    "ASIN": _of_float(pc.asin),
    "ACOS": _of_float(pc.acos),
    "ATAN": _of_float(pc.atan),
    "ATAN2": lambda a, b: pc.atan2(_float(a), _float(b)),
    "PI": lambda: pc.scalar(math.pi),
    "DEGREES": lambda v: pc.multiply(_float(v), pc.scalar(180 / math.pi)),
    "RADIANS": lambda v: pc.multiply(_float(v), pc.scalar(math.pi / 180)),
    "POWER": lambda a, b: pc.power(_float(a), _float(b)),
    "GREATEST": _greatest,
    "LEAST": _least,
    "COALESCE": _coalesce,
    "NULLIF": _null_if,
    "EPOCH": _seconds,
    "EPOCH_MS": lambda v: _epoch(v, "ms") if is_time(v.kind) else _to_moment("ms")(v),
    "EPOCH_US": lambda v: _epoch(v, "us"),
    "EPOCH_NS": lambda v: _epoch(v, "ns"),
    "TO_TIMESTAMP": lambda v: (
        pc.multiply(_float(v), pc.scalar(1e6))
        .cast(options=pc.CastOptions.unsafe(pa.int64()))
        .cast(pa.timestamp("us", "UTC"))
    ),
    "DAYNAME": lambda t: pc.strftime(t.expression, format="%A"),
    "MONTHNAME": lambda t: pc.strftime(t.expression, format="%B"),
    "STRFTIME": _formatted,
    **{name: part for name, part in PARTS.items() if name not in ("EPOCH",)},
    **MADE_MOMENTS,
    **TEXT_FUNCTIONS,
}
"""Functions of typed values; a ``ValueError`` has the words of a mistake."""
