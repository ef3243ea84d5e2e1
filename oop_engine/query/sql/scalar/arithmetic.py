"""Arithmetic of SQL, CASE and casts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.scalar.functions import case_of, divided, remainder, whole_quotient
from oop_engine.query.sql.scalar.literals import interval_us, literal_as
from oop_engine.query.sql.scalar.tried import tried
from oop_engine.query.sql.scalar.types import (
    Typed,
    cast,
    is_number,
    is_text,
    is_time,
    literal,
    named,
    rounded,
    to_common,
)

if TYPE_CHECKING:
    from oop_engine.query.sql.scalar.expressions import Expressions

__all__ = ["ARITHMETIC"]

_MOST_DIGITS, _WHOLE_DIGITS = 38, 18
_RECKONED = {exp.Add: pc.add_checked, exp.Sub: pc.subtract_checked, exp.Mul: pc.multiply_checked}
_BITWISE = {
    exp.BitwiseAnd: pc.bit_wise_and, exp.BitwiseOr: pc.bit_wise_or, exp.BitwiseXor: pc.bit_wise_xor,
    exp.BitwiseNot: pc.bit_wise_not,
}  # fmt: skip
_FLOATING = {exp.Add: pc.add, exp.Sub: pc.subtract, exp.Mul: pc.multiply}


def _negative(expressions: Expressions, node: Any) -> Typed:
    inner = expressions.of(node.this)
    if inner.is_literal and isinstance(inner.value, int | float) and not isinstance(inner.value, bool):
        return literal(-inner.value, inner.kind)
    if isinstance(inner.value, timedelta):
        return literal(-inner.value, inner.kind)
    return expressions.typed(pc.negate_checked(inner.expression), node)


def _arithmetic(expressions: Expressions, node: Any) -> Typed:
    a, b = expressions.read([expressions.of(node.this), expressions.of(node.expression)], node)
    if pa.types.is_duration(a.kind) or pa.types.is_duration(b.kind) or is_time(a.kind) or is_time(b.kind):
        return _of_times(expressions, node, a, b)
    if not (is_number(a.kind) or pa.types.is_null(a.kind)) or not (
        is_number(b.kind) or pa.types.is_null(b.kind)
    ):
        raise mistake(
            expressions.text, node, f"{a.kind} and {b.kind} cannot be reckoned with: cast them to numbers"
        )
    if isinstance(node, exp.Div):
        return expressions.typed(divided(a, b), node)
    if isinstance(node, exp.IntDiv | exp.Mod):
        try:
            return expressions.typed((remainder if isinstance(node, exp.Mod) else whole_quotient)(a, b), node)
        except ValueError as error:
            raise mistake(expressions.text, node, str(error)) from error
    if isinstance(node, exp.Mul) and any(pa.types.is_decimal(operand.kind) for operand in (a, b)):
        both = _factors(a, b)
    else:
        both = to_common([a, b])
    assert both is not None
    if (
        pa.types.is_decimal(kind := both[0].kind)
        and kind.precision == _MOST_DIGITS
        and not isinstance(node, exp.Mul)
    ):
        both = [cast(operand, pa.decimal128(_MOST_DIGITS - 1, kind.scale)) for operand in both]
    if pa.types.is_null(both[0].kind):
        both = [literal(None, pa.int64())] * 2
    if pa.types.is_integer(both[0].kind):
        both = [cast(operand, pa.int64()) for operand in both]
    table = _FLOATING if pa.types.is_floating(both[0].kind) else _RECKONED
    return expressions.typed(table[type(node)](both[0].expression, both[1].expression), node)


def _factors(a: Typed, b: Typed) -> list[Typed] | None:
    """Return factors as decimals of their own digits; as floats where the product has more digits than a decimal."""
    kinds = [_decimal(operand) for operand in (a, b)]
    if None in kinds:
        return to_common([a, b])
    if sum(kind.precision for kind in kinds) >= _MOST_DIGITS:
        kinds = _fewer_digits(*kinds)
    return [cast(operand, kind) for operand, kind in zip((a, b), kinds, strict=True)]


def _fewer_digits(a: Any, b: Any) -> list[Any]:
    """Return the types of factors with fewer digits before the point; without 18 of them, floats."""
    small, large = sorted((a, b), key=lambda kind: kind.precision)
    digits = _MOST_DIGITS - 1 - small.precision
    if digits - large.scale < _WHOLE_DIGITS:
        return [pa.float64()] * 2
    return [pa.decimal128(digits, kind.scale) if kind is large else kind for kind in (a, b)]


def _decimal(value: Typed) -> Any:
    """Return the type of a number as a decimal; None: it is a float or null."""
    if pa.types.is_decimal(value.kind):
        return value.kind
    if not pa.types.is_integer(value.kind):
        return None
    return pa.decimal128(
        len(str(abs(value.value))) if value.is_literal and value.value is not None else 19, 0
    )


def _of_times(expressions: Expressions, node: Any, a: Typed, b: Typed) -> Typed:
    if isinstance(node, exp.Mul):
        length, other = (a, b) if pa.types.is_duration(a.kind) else (b, a)
        if length.is_literal and other.is_literal and isinstance(other.value, int):
            return literal(length.value * other.value, length.kind)
        if pa.types.is_integer(other.kind):
            return expressions.typed(
                pc.multiply_checked(length.expression, other.expression.cast(pa.int64())), node
            )
    if (days := _of_days(expressions, node, a, b)) is not None:
        return days
    a, b = (
        cast(operand, pa.timestamp("us")) if pa.types.is_date(operand.kind) else operand for operand in (a, b)
    )
    if not isinstance(node, exp.Add | exp.Sub):
        raise mistake(
            expressions.text,
            node,
            f"{a.kind} and {b.kind} can be added and subtracted, and a length times an integer",
        )
    if pa.types.is_integer(a.kind) or pa.types.is_integer(b.kind):
        raise mistake(expressions.text, node, "an integer is no length of time: write INTERVAL '5' SECOND")
    return expressions.typed(_FLOATING[type(node)](a.expression, b.expression), node)


def _of_days(expressions: Expressions, node: Any, a: Typed, b: Typed) -> Typed | None:
    """Return days between two, or some days later; None: they are not days and integers alone."""
    is_day = [pa.types.is_date32(operand.kind) for operand in (a, b)]
    is_whole = [pa.types.is_integer(operand.kind) for operand in (a, b)]
    days = [
        (operand.expression.cast(pa.int32()) if day else operand.expression).cast(pa.int64())
        for operand, day in zip((a, b), is_day, strict=True)
    ]
    if isinstance(node, exp.Sub) and all(is_day):
        return Typed(pc.subtract(*days), pa.int64())
    if isinstance(node, exp.Add) and is_day != is_whole and any(is_day) and any(is_whole):
        return expressions.typed(pc.add_checked(*days).cast(pa.int32()).cast(pa.date32()), node)
    if isinstance(node, exp.Sub) and is_day[0] and is_whole[1]:
        return expressions.typed(pc.subtract_checked(*days).cast(pa.int32()).cast(pa.date32()), node)
    return None


def _interval(expressions: Expressions, node: Any) -> Typed:
    return literal(timedelta(microseconds=interval_us(expressions.text, node)), pa.duration("us"))


def _case(expressions: Expressions, node: Any) -> Typed:
    branches = node.args["ifs"]
    given = node.args.get("this")
    conditions = [
        expressions.predicate(
            branch.this if given is None else exp.EQ(this=given.copy(), expression=branch.this.copy())
        )
        for branch in branches
    ]
    results = [branch.args["true"] for branch in branches] + [node.args.get("default") or exp.Null()]
    values = expressions.alike(node, *results)
    return expressions.typed(case_of(conditions, [value.expression for value in values]), node)


def _if_else(expressions: Expressions, node: Any) -> Typed:
    values = expressions.alike(node, node.args["true"], node.args.get("false") or exp.Null())
    return expressions.typed(
        case_of([expressions.predicate(node.this)], [value.expression for value in values]), node
    )


def _converted(expressions: Expressions, node: Any) -> Typed:
    kind = named(node.args["to"])
    if kind is None:
        raise mistake(
            expressions.text,
            node,
            f"no type {node.args['to'].sql('duckdb')!r} here: BIGINT, DOUBLE, VARCHAR, ...",
        )
    value = expressions.of(node.this)
    if value.is_literal and is_text(value.kind) and not is_text(kind):
        return literal_as(expressions.text, value, kind, node)
    if pa.types.is_floating(value.kind) and pa.types.is_integer(kind):
        return expressions.typed(rounded(value, 0, "half_to_even").cast(kind), node)
    digits = kind.scale if pa.types.is_decimal(kind) else 0 if pa.types.is_integer(kind) else None
    if digits is not None and (pa.types.is_decimal(value.kind) or pa.types.is_floating(value.kind)):
        whole = Typed(rounded(value, digits, "half_towards_infinity"), value.kind)
        return expressions.typed(cast(whole, kind).expression, node)
    if pa.types.is_boolean(value.kind) and is_text(kind):
        return expressions.typed(value.expression.cast(kind), node)
    result = cast(value, kind, safe=not is_time(kind))
    return result if result.is_literal else expressions.typed(result.expression, node)


def _later(expressions: Expressions, node: Any) -> Typed:
    """Return ``date_add(ts, INTERVAL ...)``."""
    return _arithmetic(expressions, exp.Add(this=node.this, expression=node.expression))


def _tried(expressions: Expressions, node: Any) -> Typed:
    """Return a value in another type, null where it has none there."""
    kind = named(node.args["to"])
    if kind is None:
        return _converted(expressions, node)
    value = expressions.of(node.this)
    result = tried(value, kind)
    return _converted(expressions, node) if result is None else expressions.typed(result, node)


def _bits(expressions: Expressions, node: Any) -> Typed:
    """Return the bits of integers combined; of mixed types in 64 bits."""
    parts = [node.this] if isinstance(node, exp.BitwiseNot) else [node.this, node.expression]
    values = expressions.alike(node, *parts)
    if not pa.types.is_integer(values[0].kind):
        raise mistake(expressions.text, node, f"bits are of integers; this is {values[0].kind}")
    return expressions.typed(_BITWISE[type(node)](*(value.expression for value in values)), node)


def _joined_texts(expressions: Expressions, node: Any) -> Typed:
    a, b = (cast(expressions.of(operand), pa.string()).expression for operand in (node.this, node.expression))
    return Typed(pc.binary_join_element_wise(a, b, pc.scalar("")), pa.string())


ARITHMETIC: dict[Any, Any] = {
    exp.Neg: _negative,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), _arithmetic),
    exp.Interval: _interval,
    exp.Case: _case,
    exp.If: _if_else,
    exp.TryCast: _tried,
    exp.Cast: _converted,
    **dict.fromkeys(_BITWISE, _bits),
    exp.DateAdd: _later,
    exp.DPipe: _joined_texts,
}
"""Arithmetic by the classes of the parser."""
