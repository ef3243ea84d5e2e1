"""Plan of a join: the table, the condition, and the parts of WHERE that the join or its sides take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from sqlglot import exp

from oop_engine.operators.joining.bands import Bands
from oop_engine.query.sql.fields import with_fields
from oop_engine.query.sql.joins.condition import Condition, check_kind, condition_of, conjuncts
from oop_engine.query.sql.joins.joined import joined
from oop_engine.query.sql.joins.using import merged
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.reading.thesis import TUMBLING
from oop_engine.query.sql.relation import NamedStream

__all__ = ["JoinPlan"]

Known = Mapping[str, NamedStream]


class _Planner(Protocol):
    def read(self, node: Any, known: Known) -> NamedStream: ...

    def filtered(self, relation: NamedStream, parts: list[Any], known: Known) -> NamedStream: ...


_NOT_OF_ROWS = (exp.Query, exp.Window, exp.AggFunc, exp.Anonymous)


class JoinPlan:
    """Plans the joins of one SELECT; ``known`` are the parts of WITH."""

    def __init__(self, text: str, planner: _Planner, known: Known, select: Any) -> None:
        self._text, self._planner, self._known, self._select = text, planner, known, select

    def behind(self, left: NamedStream, join: Any) -> NamedStream:
        """Return the join of the tables before with the table of a parsed join."""
        version = join.this.args.pop("version", None)
        right = self._planner.read(join.this, self._known)
        band = self._band(join, left, right)
        left, right = (replace(side, windows=None, bracket=None) for side in (left, right))
        kind, on = check_kind(self._text, join), join.args.get("on")
        if using := join.args.get("using"):
            on = exp.and_(*(exp.EQ(this=_of(name, left), expression=_of(name, right)) for name in using))
        if kind == "inner":
            on = self._with_where(on, left, right)
        if on is not None:
            with_fields(self._text, on, left.named_columns, right.named_columns)
        left, right, on = self._below(kind, on, (left, right))
        if not self._may_keep_all():
            left, right = self._where_below(kind, (left, right))
        if on is None and band is None:
            raise unsupported(self._text, join, "a join without a condition", "JOIN ... ON a.k = b.k AND ...")
        condition = condition_of(self._text, on, left, right)
        condition.band = condition.band or band
        if version is not None:
            kind = self._as_of(version, kind, condition, left)
        relation = joined(self._text, join, kind, condition, left, right)
        return merged(relation, [name.name for name in using or []], kind, len(left.names.names))

    def _as_of(self, version: Any, kind: str, condition: Condition, left: NamedStream) -> str:
        """Return the kind of a join with ``FOR SYSTEM_TIME AS OF``: each left row with the version of its time."""
        moment = version.expression
        if (
            not isinstance(moment, exp.Column)
            or left.names.columns(moment) != [left.time]
            or kind not in ("inner", "left")
        ):
            words = f"FOR SYSTEM_TIME AS OF reads the event time of the left side, {left.time}, in JOIN or LEFT JOIN"
            raise mistake(self._text, version, words)
        condition.narrow(None, 0)
        return f"asof-{kind}"

    def _below(
        self, kind: str, on: Any, sides: tuple[NamedStream, NamedStream]
    ) -> tuple[NamedStream, NamedStream, Any]:
        """Return the sides of a join behind the parts of its condition that are about one of them, and the others."""
        left, right = sides
        rest = conjuncts(on)
        if kind in ("inner", "left", "semi", "anti"):
            right, rest = self._apart(rest, right, left)
        if kind in ("inner", "right", "semi"):
            left, rest = self._apart(rest, left, right)
        return left, right, _whole(rest)

    def _where_below(
        self, kind: str, sides: tuple[NamedStream, NamedStream]
    ) -> tuple[NamedStream, NamedStream]:
        """Return the sides of a join behind the parts of WHERE that are about one of them alone."""
        left, right = sides
        if (where := self._select.args.get("where")) is None:
            return sides
        rest = parts = conjuncts(where.this)
        if kind in ("inner", "left", "semi", "anti"):
            left, rest = self._apart(rest, left, right)
        if kind == "inner":
            right, rest = self._apart(rest, right, left)
        if len(rest) < len(parts):
            self._select.set("where", exp.Where(this=_whole(rest)) if rest else None)
        return left, right

    def _apart(
        self, parts: list[Any], relation: NamedStream, other: NamedStream
    ) -> tuple[NamedStream, list[Any]]:
        """Return a side behind the conditions about it alone, whose columns have their table, and the others."""
        sides = [(part, _is_about(part, relation, other)) for part in parts]
        own, rest = ([part for part, is_own in sides if is_own is wanted] for wanted in (True, False))
        return self._planner.filtered(relation, own, self._known), rest

    def _band(self, join: Any, left: NamedStream, right: NamedStream) -> Bands | None:
        """Return the band of a join of two windows in brackets; None: neither has windows."""
        if left.windows is None and right.windows is None:
            return None
        both = left.bracket is not None and right.bracket is not None
        band = left.bracket.band(right.bracket) if both else None  # type: ignore[union-attr, arg-type]
        if band is None:
            form = "a join of windows that are not aggregated"
            instead = "aggregate each in a WITH, or give both a [RANGE 5 MINUTES]"
            raise unsupported(self._text, join, form, instead)
        return band

    def _with_where(self, on: Any, left: NamedStream, right: NamedStream) -> Any:
        """Return the condition of an inner join with the parts of WHERE about both sides, which are taken out of it."""
        where = self._select.args.get("where")
        parts = [] if where is None or self._may_keep_all() else conjuncts(where.this)
        if not parts:
            return on
        sides = [
            (part, _is_tumbling(part) or (not part.find(exp.Query) and _is_of(part, left, right)))
            for part in parts
        ]
        both, rest = ([part for part, is_both in sides if is_both is wanted] for wanted in (True, False))
        if both:
            self._select.set("where", exp.Where(this=_whole(rest)) if rest else None)
        return _whole([*([] if on is None else [on]), *both])

    def _may_keep_all(self) -> bool:
        """Return whether a join of the SELECT keeps rows of its right side without a partner: WHERE is behind that."""
        sides = [str(join.args.get("side") or "").upper() for join in self._select.args["joins"]]
        return "RIGHT" in sides or "FULL" in sides


def _whole(parts: list[Any]) -> Any:
    """Return conditions as one, which is made of themselves; None: there are none."""
    return exp.and_(*parts, copy=False) if parts else None


def _is_about(node: Any, relation: NamedStream, other: NamedStream) -> bool:
    """Return whether a condition is about one side alone, whatever tables follow: its columns have a table."""
    parts = list(node.walk())
    if any(isinstance(part, _NOT_OF_ROWS) for part in parts):
        return False
    columns = [part for part in parts if isinstance(part, exp.Column)]
    return bool(columns) and all(
        column.table and relation.names.columns(column) and not other.names.columns(column)
        for column in columns
    )


def _is_tumbling(node: Any) -> bool:
    return isinstance(node, exp.Anonymous) and node.name == TUMBLING


def _is_of(node: Any, left: NamedStream, right: NamedStream) -> bool:
    """Return whether a condition reads columns of both sides, and of no other."""
    columns = list(node.find_all(exp.Column))
    sides = [[bool(side.names.columns(column)) for side in (left, right)] for column in columns]
    return all(map(any, sides)) and all(
        any(one[side] and not one[1 - side] for one in sides) for side in (0, 1)
    )


def _of(node: Any, relation: NamedStream) -> Any:
    """Return a column of USING as one of a relation."""
    table = next((name.table for name in relation.names.names if name.name.lower() == node.name.lower()), "")
    return exp.column(exp.to_identifier(node.name), table=table or None)
