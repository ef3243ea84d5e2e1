"""Predicates of SQL: comparisons and their logic of three values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.operators.values.row_functions import called
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.scalar.types import Typed, cast, literal

if TYPE_CHECKING:
    from oop_engine.query.sql.scalar.expressions import Expressions

__all__ = ["PREDICATES"]

_COMPARED = {
    exp.EQ: pc.equal, exp.NEQ: pc.not_equal, exp.GT: pc.greater, exp.GTE: pc.greater_equal, exp.LT: pc.less,
    exp.LTE: pc.less_equal,
}  # fmt: skip


def _comparison(expressions: Expressions, node: Any) -> Typed:
    values = expressions.alike(node, node.this, node.expression)
    return Typed(_COMPARED[type(node)](*(value.expression for value in values)), pa.bool_())


def _logic(expressions: Expressions, node: Any) -> Typed:
    a, b = expressions.predicate(node.this), expressions.predicate(node.expression)
    return Typed((pc.and_kleene if isinstance(node, exp.And) else pc.or_kleene)(a, b), pa.bool_())


def _negation(expressions: Expressions, node: Any) -> Typed:
    return Typed(pc.invert(expressions.predicate(node.this)), pa.bool_())


def _is_value(expressions: Expressions, node: Any) -> Typed:
    value = expressions.of(node.this)
    if isinstance(node.expression, exp.Null):
        return Typed(pc.is_null(value.expression), pa.bool_())
    if isinstance(node.expression, exp.Boolean):
        given = pc.scalar(bool(node.expression.this))
        return Typed(
            pc.coalesce(pc.equal(expressions.predicate(node.this), given), pc.scalar(False)), pa.bool_()
        )
    raise unsupported(expressions.text, node, "this form of IS", "write IS NULL, IS TRUE, IS DISTINCT FROM")


def _distinct_from(expressions: Expressions, node: Any) -> Typed:
    a, b = (operand.expression for operand in expressions.alike(node, node.this, node.expression))
    same = pc.or_kleene(
        pc.and_kleene(pc.is_null(a), pc.is_null(b)), pc.coalesce(pc.equal(a, b), pc.scalar(False))
    )
    return Typed(same if isinstance(node, exp.NullSafeEQ) else pc.invert(same), pa.bool_())


def _between(expressions: Expressions, node: Any) -> Typed:
    value, low, high = expressions.alike(node, node.this, node.args["low"], node.args["high"])
    above = pc.greater_equal(value.expression, low.expression)
    return Typed(pc.and_kleene(above, pc.less_equal(value.expression, high.expression)), pa.bool_())


def _one_of(expressions: Expressions, node: Any) -> Typed:
    if node.args.get("query") is not None:
        raise unsupported(
            expressions.text, node, "IN over a subquery in an expression", "write it as a condition of WHERE"
        )
    values = expressions.alike(node, node.this, *node.expressions)
    any_equal: Any = pc.scalar(False)
    for value in values[1:]:
        any_equal = pc.or_kleene(any_equal, pc.equal(values[0].expression, value.expression))
    return Typed(any_equal, pa.bool_())


def _like(expressions: Expressions, node: Any, sign: str = "") -> Typed:
    pattern = expressions.of(node.expression)
    if not pattern.is_literal:
        return _like_column(expressions, node, pattern, sign)
    if pattern.value is None:
        return literal(None, pa.bool_())
    text = cast(expressions.of(node.this), pa.string()).expression
    without_case = isinstance(node, exp.ILike)
    escaped = _escaped(str(pattern.value), sign)
    if escaped is None:
        raise mistake(
            expressions.text, node, f"nothing is behind the escape {sign!r} at the end of the pattern"
        )
    matches = pc.match_like(text, escaped, ignore_case=without_case)
    return Typed(pc.invert(matches) if node.args.get("negate") else matches, pa.bool_())


def _like_column(expressions: Expressions, node: Any, pattern: Typed, sign: str) -> Typed:
    """Return whether a text is like a pattern of its row."""
    if sign:
        raise unsupported(
            expressions.text, node, "ESCAPE with a pattern that is a column", "write the pattern as a text"
        )
    texts = (cast(operand, pa.string()).expression for operand in (expressions.of(node.this), pattern))
    matches = called("ilike" if isinstance(node, exp.ILike) else "like", *texts)
    return Typed(pc.invert(matches) if node.args.get("negate") else matches, pa.bool_())


def _similar(expressions: Expressions, node: Any) -> Typed:
    """Return whether a whole text matches a pattern, a regular expression as in DuckDB."""
    return expressions.of(exp.Anonymous(this="REGEXP_FULL_MATCH", expressions=[node.this, node.expression]))


def _like_with_escape(expressions: Expressions, node: Any) -> Typed:
    sign, like = expressions.of(node.expression).value, node.this
    negated = isinstance(like, exp.Not)
    inner = like.this if negated else like
    if not isinstance(sign, str) or len(sign) != 1 or not isinstance(inner, exp.Like | exp.ILike):
        raise mistake(expressions.text, node, "ESCAPE takes one sign, as in x LIKE '10#%' ESCAPE '#'")
    result = _like(expressions, inner, sign)
    return Typed(pc.invert(result.expression), pa.bool_()) if negated else result


def _escaped(pattern: str, sign: str) -> str | None:
    r"""Return a pattern whose escape is a backslash, as Arrow reads it; None: its last sign is an escape.

    >>> print(_escaped("10#%_", "#"), _escaped("a\\b%", ""))
    10\%_ a\\b%
    """
    out, signs = "", iter(pattern)
    for letter in signs:
        if letter == sign:
            if (letter := next(signs, "")) == "":
                return None
            out += "\\" + letter
        else:
            out += "\\\\" if letter == "\\" else letter
    return out


PREDICATES: dict[Any, Any] = {
    **dict.fromkeys(_COMPARED, _comparison),
    exp.And: _logic,
    exp.Or: _logic,
    exp.Not: _negation,
    exp.Is: _is_value,
    exp.NullSafeEQ: _distinct_from,
    exp.NullSafeNEQ: _distinct_from,
    exp.Between: _between,
    exp.In: _one_of,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _like_with_escape,
    exp.SimilarTo: _similar,
}
"""Predicates by the classes of the parser."""
