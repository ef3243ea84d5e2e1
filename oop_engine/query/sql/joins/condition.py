"""Joins of SQL: the condition becomes keys, a band of time, and a predicate on pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlglot import exp

from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS, to_units
from oop_engine.operators.joining.bands import Bands
from oop_engine.query.sql.fields import with_fields
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.reading.thesis import TUMBLING
from oop_engine.query.sql.relation import NamedStream
from oop_engine.query.sql.scalar.literals import interval_us
from oop_engine.query.sql.windows.brackets import bracket_of

__all__ = ["Condition", "check_kind", "condition_of", "conjuncts"]

_TURNED = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ}


@dataclass
class Condition:
    """``least`` and ``most``: of the right time minus the left one, in units; ``rest``: other conditions.

    ``band``: that of windows, where the join is on windows.
    """

    pairs: list[tuple[str, str]] = field(default_factory=list)
    least: int | None = None
    most: int | None = None
    rest: list[Any] = field(default_factory=list)
    band: Bands | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether there is a condition on the times of both."""
        return self.band is not None or self.least is not None or self.most is not None

    def narrow(self, least: int | None, most: int | None) -> None:
        """Take another bound of the difference."""
        if least is not None:
            self.least = least if self.least is None else max(self.least, least)
        if most is not None:
            self.most = most if self.most is None else min(self.most, most)


def conjuncts(node: Any) -> list[Any]:
    """Return the parts of a condition that all must hold."""
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    return [] if node is None else [node]


def condition_of(text: str, node: Any, left: NamedStream, right: NamedStream) -> Condition:
    """Return the condition of a join of two relations."""
    condition = Condition()
    if node is not None:  # beside a subquery it may name fields of the query around it
        with_fields(text, node, left.named_columns, right.named_columns)
    for part in conjuncts(node):
        _Part(text, left, right, condition).take(part)
    return condition


class _Part:
    """One part of a condition."""

    def __init__(self, text: str, left: NamedStream, right: NamedStream, into: Condition) -> None:
        self._text, self._left, self._right, self._into = text, left, right, into

    def take(self, node: Any) -> None:
        if isinstance(node, exp.Between):
            low = exp.GTE(this=node.this, expression=node.args["low"])
            high = exp.LTE(this=node.this, expression=node.args["high"])
            if self._times(low) is not None and self._times(high) is not None:
                self._compare(low)
                self._compare(high)
                return
        elif type(node) in _TURNED and self._times(node) is not None:
            self._compare(node)
            return
        elif isinstance(node, exp.Anonymous) and node.name.upper() == TUMBLING:
            self._into.band = bracket_of(self._text, node, node.expressions[0].name).tumbling()
            return
        elif isinstance(node, exp.EQ) and (pair := self._pair(node)) is not None:
            self._into.pairs.append(pair)
            return
        self._into.rest.append(node)

    def _pair(self, node: Any) -> tuple[str, str] | None:
        """Return the columns of a left and a right key."""
        sides = [self._side(operand) for operand in (node.this, node.expression)]
        match sides:
            case [(0, a), (1, b)]:
                return a, b
            case [(1, b), (0, a)]:
                return a, b
        return None

    def _side(self, node: Any) -> tuple[int, str] | None:
        """Return whose column a name is, 0 left, 1 right, and the column."""
        if not isinstance(node, exp.Column):
            return None
        own_columns = [
            (side, columns[0])
            for side, relation in enumerate((self._left, self._right))
            if len(columns := relation.names.columns(node)) == 1
        ]
        if len(own_columns) == 2:
            raise mistake(self._text, node, f"{node.name!r} is ambiguous: write its table before it")
        return own_columns[0] if own_columns else None

    def _times(self, node: Any) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Return both sides of a comparison of times as (side, units that are added)."""
        sides = [self._moment(operand) for operand in (node.this, node.expression)]
        if None in sides or sides[0][0] == sides[1][0]:  # type: ignore[index]
            return None
        return sides[0], sides[1]  # type: ignore[return-value]

    def _moment(self, node: Any) -> tuple[int, int] | None:
        if isinstance(node, exp.Paren):
            return self._moment(node.this)
        if isinstance(node, exp.Add | exp.Sub):
            inner, length = self._moment(node.this), self._length(node.expression)
            if inner is None and isinstance(node, exp.Add):
                inner, length = self._moment(node.expression), self._length(node.this)
            if inner is None or length is None:
                return None
            return inner[0], inner[1] + (length if isinstance(node, exp.Add) else -length)
        side = self._side(node)
        if side is None or side[1] != (self._left, self._right)[side[0]].time:
            return None
        return side[0], 0

    def _length(self, node: Any) -> int | None:
        schema: Schema = self._left.stream.schema
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            return int(node.this)
        if isinstance(node, exp.Interval | exp.Paren | exp.Neg) and node.find(exp.Interval):
            micros = interval_us(self._text, node)
            if schema.unit not in TIME_UNITS:
                raise mistake(
                    self._text, node, f"the event time is in {schema.unit!r}: write a plain integer"
                )
            return to_units(timedelta(microseconds=micros), schema.unit, "join")
        return None

    def _compare(self, node: Any) -> None:
        """Take a bound of right time minus left time from ``a + x op b + y``."""
        sides = self._times(node)
        assert sides is not None
        (side, a), (_, b) = sides
        operator = type(node)
        if side == 0:  # left + a op right + b: right - left turned-op a - b
            operator, difference = _TURNED[operator], a - b
        else:
            difference = b - a
        if operator is exp.EQ:
            self._into.narrow(difference, difference)
        elif operator in (exp.GT, exp.GTE):
            self._into.narrow(difference + (operator is exp.GT), None)
        else:
            self._into.narrow(None, difference - (operator is exp.LT))


def check_kind(text: str, node: Any) -> str:
    """Return the kind of a parsed join: inner, left, right, full, semi, anti, or as-of ones."""
    kind, side, method = (str(node.args.get(name) or "").upper() for name in ("kind", "side", "method"))
    if method == "ASOF":
        return f"asof-{(side or 'inner').lower()}"
    if kind == "CROSS" or method == "NATURAL":
        raise unsupported(
            text, node, f"{method or kind} JOIN", "name the keys, JOIN ... ON a.k = b.k AND ..."
        )
    if kind in ("SEMI", "ANTI"):
        return kind.lower()
    return (side or "inner").lower()
