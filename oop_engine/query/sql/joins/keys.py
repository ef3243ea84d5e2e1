"""Keys: equal expressions of both sides of a join become columns, in a common type."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.query.sql.joins.condition import Condition
from oop_engine.query.sql.plans import project
from oop_engine.query.sql.reading.mistakes import mistake
from oop_engine.query.sql.relation import NamedStream
from oop_engine.query.sql.scalar.expressions import Expressions
from oop_engine.query.sql.scalar.types import Typed, cast, common, is_text

__all__ = ["with_keys"]


def with_keys(
    text: str, condition: Condition, left: NamedStream, right: NamedStream
) -> tuple[Condition, NamedStream, NamedStream]:
    """Return the condition with a pair of columns for each equality of both sides, and the sides with these columns."""
    sides = [_Side(text, left), _Side(text, right)]
    pairs, rest = [], []
    for a, b in condition.pairs:
        pairs.append(_pair(text, None, [sides[0].column(a), sides[1].column(b)], sides))
    for part in condition.rest:
        operands = _both(part, left, right)
        if operands is None and not condition.pairs:
            operands = _apart(text, part, left, right)
        if operands is None:
            rest.append(part)
            continue
        values = [side.value(operand) for side, operand in zip(sides, operands, strict=True)]
        if isinstance(part, exp.NullSafeEQ):
            pairs += _null_safe(text, part, values, sides)
        else:
            pairs.append(_pair(text, part, values, sides))
    return replace(condition, pairs=pairs, rest=rest), sides[0].relation(), sides[1].relation()


class _Side:
    """One side, and the columns that it gets."""

    def __init__(self, text: str, relation: NamedStream) -> None:
        self._text, self._relation = text, relation
        self._added: dict[str, Any] = {}
        self._used: set[str] = set()

    def column(self, name: str) -> Typed:
        return Typed(name, self._relation.stream.schema.type_of(name))

    def value(self, node: Any) -> Typed:
        relation = self._relation
        if isinstance(node, exp.Column):
            return self.column(relation.names.column(self._text, node))
        return Expressions(self._text, relation.names, relation.stream.schema).value(node)

    def add(self, value: Typed, kind: pa.DataType) -> str:
        """Return a column with a value in a type: the one that is there, or a new one."""
        if isinstance(value.expression, str):
            if value.kind == kind and value.expression not in self._used:
                self._used.add(value.expression)
                return value.expression
            value = Typed(pc.field(value.expression), value.kind)
        taken = self._relation.stream.schema.names
        number = len(self._added)
        while (name := f"_on{number}") in taken:
            number += 1
        self._added[name] = cast(value, kind).expression
        return name

    def relation(self) -> NamedStream:
        if not self._added:
            return self._relation
        stream = self._relation.stream
        whole = {**{name: name for name in stream.schema.names}, **self._added}
        return replace(self._relation, stream=project(stream, whole))


def _pair(text: str, node: Any, values: list[Typed], sides: list[_Side]) -> tuple[str, str]:
    kind = _common(text, node, values)
    left, right = (side.add(value, kind) for side, value in zip(sides, values, strict=True))
    return left, right


def _common(text: str, node: Any, values: list[Typed]) -> pa.DataType:
    """Return the type of both keys; raises ``UsageError`` where they have none in common."""
    kinds = [value.kind for value in values]
    kind = kinds[0] if kinds[0] == kinds[1] else common(kinds)
    if kind is None:
        words = f"{kinds[0]} and {kinds[1]} cannot be compared: cast one, CAST(x AS ...)"
        raise mistake(text, exp.Null() if node is None else node, words)
    return kind


def _null_safe(text: str, node: Any, values: list[Typed], sides: list[_Side]) -> list[tuple[str, str]]:
    """Return two pairs of columns, for a join pairs no nulls: whether a value is null, and it with another for null."""
    kind = _common(text, node, values)
    alike = [
        cast(
            replace(value, expression=pc.field(value.expression))
            if isinstance(value.expression, str)
            else value,
            kind,
        )
        for value in values
    ]
    other = pc.scalar(_any_value(kind))
    unknown = [Typed(pc.is_null(value.expression), pa.bool_()) for value in alike]
    filled = [Typed(pc.coalesce(value.expression, other), kind) for value in alike]
    return [_added(pair, sides) for pair in (unknown, filled)]


def _any_value(kind: pa.DataType) -> pa.Scalar:
    """Return a value of a type."""
    if is_text(kind) or pa.types.is_boolean(kind):
        return pa.scalar("" if is_text(kind) else False, kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(0), kind)
    return pa.scalar(0, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)


def _added(values: list[Typed], sides: list[_Side]) -> tuple[str, str]:
    left, right = (side.add(value, value.kind) for side, value in zip(sides, values, strict=True))
    return left, right


def _apart(text: str, node: Any, left: NamedStream, right: NamedStream) -> tuple[Any, Any] | None:
    """Return the sides of ``a.x + b.y = z`` and ``a.x - b.y = z`` as equal keys, ``b.y = z - a.x``.

    None: it is another condition, or one over floats, whose sums are rounded.
    """
    if type(node) is not exp.EQ or node.find(exp.Query):
        return None
    for both, rest in ((node.this, node.expression), (node.expression, node.this)):
        while isinstance(both, exp.Paren):
            both = both.this
        if not isinstance(both, exp.Add | exp.Sub) or rest.find(exp.Column):
            continue
        a, b = both.this, both.expression
        if not (_is_of(a, left, right) and _is_of(b, right, left)) and not (
            _is_of(a, right, left) and _is_of(b, left, right)
        ):
            continue
        if not all(_is_whole(text, operand, left, right) for operand in (a, b)) or not _is_whole_literal(
            rest
        ):
            continue
        alone = exp.Sub(this=rest.copy(), expression=exp.Paren(this=a.copy()))
        if isinstance(both, exp.Sub):
            alone = exp.Sub(this=a.copy(), expression=rest.copy())
        return (alone, b) if _is_of(a, left, right) else (b, alone)
    return None


def _is_whole(text: str, node: Any, left: NamedStream, right: NamedStream) -> bool:
    """Return whether an expression of one side is an integer."""
    side = left if _is_of(node, left, right) else right
    return bool(pa.types.is_integer(Expressions(text, side.names, side.stream.schema).of(node).kind))


def _is_whole_literal(node: Any) -> bool:
    inner = node.this if isinstance(node, exp.Neg) else node
    return isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit()


def _both(node: Any, left: NamedStream, right: NamedStream) -> tuple[Any, Any] | None:
    """Return the sides of an equality, that of the left relation first; None: it is another condition."""
    if not isinstance(node, exp.EQ | exp.NullSafeEQ) or node.find(exp.Query):
        return None
    for a, b in ((node.this, node.expression), (node.expression, node.this)):
        if _is_of(a, left, right) and _is_of(b, right, left):
            return a, b
    return None


def _is_of(node: Any, relation: NamedStream, other: NamedStream) -> bool:
    """Return whether an expression reads columns of one relation alone."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(relation.names.columns(c) and not other.names.columns(c) for c in columns)
