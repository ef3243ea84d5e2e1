"""Subqueries of WHERE: ``IN (SELECT ...)`` and ``EXISTS (SELECT ...)`` become semi and anti joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.operators.aggregates import Count
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Global
from oop_engine.query.sql.joins.condition import Condition, condition_of, conjuncts
from oop_engine.query.sql.joins.joined import joined
from oop_engine.query.sql.nested.inner import Known, Plans, has_aggregates, inner_of, is_plain, select_of
from oop_engine.query.sql.nested.scalars import beside
from oop_engine.query.sql.plans import OF_SUBQUERY, project, then
from oop_engine.query.sql.reading.mistakes import unsupported
from oop_engine.query.sql.relation import Name, NamedStream, Names, columns_of
from oop_engine.query.sql.scalar.expressions import Expressions
from oop_engine.query.sql.stage import inner_of as unaliased

__all__ = ["Subqueries"]

_NOT_IN = f"NOT IN needs all values, write NOT EXISTS; {OF_SUBQUERY}"


class Subqueries:
    """The subqueries of one WHERE; ``known`` are the parts of WITH."""

    def __init__(self, text: str, planner: Plans, known: Known) -> None:
        self._text, self._planner, self._known = text, planner, known

    def behind(self, node: Any, relation: NamedStream) -> NamedStream:
        """Return the relation behind the joins; they are taken out of the WHERE of ``node``."""
        where = node.args.get("where")
        if where is None or not where.find(exp.Query):
            return relation
        rest = []
        for part in conjuncts(where.this):
            inner = part.this.unnest() if isinstance(part, exp.Not) else part
            kind = "anti" if isinstance(part, exp.Not) else "semi"
            if isinstance(inner, exp.In) and inner.args.get("query") is not None:
                relation = self._in(inner, kind, relation)
            elif (
                isinstance(inner, exp.Exists)
                and is_plain(select := select_of(inner.this))
                and not has_aggregates(select)
            ):
                relation = self._exists(inner, kind, relation)
            else:
                rest.append(part)
        node.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
        return relation

    def _in(self, node: Any, kind: str, relation: NamedStream) -> NamedStream:
        select = select_of(node.args["query"])
        if is_plain(select) and not has_aggregates(select):
            right, others = inner_of(self._planner, select, self._known)
            columns = [unaliased(expression) for expression in select.expressions]
        else:
            right, others = self._planner.query(select, self._known), []
            columns = [exp.column(exp.to_identifier(name.name, quoted=True)) for name in right.names.names]
        operands = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        if len(operands) != len(columns) or any(isinstance(column, exp.Star) for column in columns):
            raise unsupported(self._text, node, "this form of IN", "x IN (SELECT column FROM ...)")
        relation, own = self._computed(relation, operands, "_of")
        right, given = self._computed(right, columns, "_in")
        if kind == "anti" and (len(own) > 1 or not others):
            if len(own) > 1:
                raise unsupported(
                    self._text, node, "NOT IN of several columns", "NOT EXISTS (SELECT ... WHERE ...)"
                )
            return self._not_in(node, (own[0], given[0]), relation, right)
        condition = self._condition(others, relation, right)
        if kind == "semi":
            condition.pairs += zip(own, given, strict=True)
            return joined(self._text, node, kind, condition, relation, right)
        relation, right = _with_name(relation, "_x", own[0]), _with_name(right, "_y", given[0])
        x, y = exp.column("_x"), exp.column("_y")
        unknown = [exp.Is(this=side, expression=exp.Null()) for side in (x, y)]
        condition.rest.append(exp.Paren(this=exp.or_(exp.EQ(this=x, expression=y), *unknown)))
        return joined(self._text, node, kind, condition, relation, right)

    def _condition(self, parts: list[Any], left: NamedStream, right: NamedStream) -> Condition:
        return condition_of(self._text, exp.and_(*parts) if parts else None, left, right)

    def _computed(
        self, relation: NamedStream, nodes: list[Any], prefix: str
    ) -> tuple[NamedStream, list[str]]:
        """Return a relation with the values of some expressions as columns, and their names."""
        made = Expressions(self._text, relation.names, relation.stream.schema)
        names, new = [], {}
        for i, node in enumerate(nodes):
            if isinstance(node, exp.Column):
                names.append(relation.names.column(self._text, node))
                continue
            name = f"{prefix}{i}"
            while name in relation.stream.schema.names:
                name += "_"
            new[name] = made.value(node).expression
            names.append(name)
        if not new:
            return relation, names
        whole = {**{name: name for name in relation.stream.schema.names}, **new}
        return replace(relation, stream=project(relation.stream, whole)), names

    def _not_in(
        self, node: Any, pair: tuple[str, str], relation: NamedStream, right: NamedStream
    ) -> NamedStream:
        """Return the rows of ``x NOT IN (...)``: none if one value is null, and of null ones those of no values."""
        counts = {"_all": Count(), "_known": Count("_value")}
        values = project(right.stream, {"_time": right.time, "_value": pair[1]})
        sums = then(values, "agg", WindowAggregate(Global(), counts), _NOT_IN)
        counted, [every, known] = beside(
            relation, NamedStream(sums, columns_of(sums.schema)), ["_all", "_known"]
        )
        all_known = pc.equal(pc.field(every), pc.field(known))
        given = pc.is_valid(pc.field(pair[0]))
        nothing = pc.is_null(pc.field(every))
        stays = pc.or_kleene(nothing, pc.and_kleene(all_known, given))
        return joined(
            self._text,
            node,
            "anti",
            Condition([pair]),
            replace(counted, stream=counted.stream.filter(stays)),
            right,
        )

    def _exists(self, node: Any, kind: str, relation: NamedStream) -> NamedStream:
        right, others = inner_of(self._planner, select_of(node.this), self._known)
        return joined(self._text, node, kind, self._condition(others, relation, right), relation, right)


def _with_name(relation: NamedStream, name: str, column: str) -> NamedStream:
    return replace(relation, names=Names((*relation.names.names, Name("", name, column))))
