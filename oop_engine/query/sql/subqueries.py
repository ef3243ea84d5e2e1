"""Subqueries of WHERE: ``IN (SELECT ...)`` and ``EXISTS (SELECT ...)`` become semi and anti joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.operators.aggregates import Count
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Global
from oop_engine.query.sql.grouping import UNBOUNDED
from oop_engine.query.sql.joins.condition import Condition, condition_of, conjuncts
from oop_engine.query.sql.joins.joined import joined
from oop_engine.query.sql.plans import project, then
from oop_engine.query.sql.reading.mistakes import unsupported
from oop_engine.query.sql.relation import NamedStream, columns_of
from oop_engine.query.sql.scalar.expressions import Expressions
from oop_engine.query.sql.scalars import Plans, beside

__all__ = ["Subqueries"]


class Subqueries:
    """The subqueries of one WHERE; ``known`` are the parts of WITH."""

    def __init__(self, text: str, planner: Plans, known: Mapping[str, NamedStream]) -> None:
        self._text, self._planner, self._known = text, planner, known

    def behind(self, node: Any, relation: NamedStream) -> NamedStream:
        """Return the relation behind the joins; they are taken out of the WHERE of ``node``."""
        where = node.args.get("where")
        if where is None or not where.find(exp.Query):
            return relation
        rest = []
        for part in conjuncts(where.this):
            inner = part.this if isinstance(part, exp.Not) else part
            kind = "anti" if isinstance(part, exp.Not) else "semi"
            if isinstance(inner, exp.In) and inner.args.get("query") is not None:
                relation = self._in(inner, kind, relation)
            elif isinstance(inner, exp.Exists):
                relation = self._exists(inner, kind, relation)
            else:
                rest.append(part)
        node.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
        return relation

    def _in(self, node: Any, kind: str, relation: NamedStream) -> NamedStream:
        query = node.args["query"]
        right = self._planner.query(query.this if isinstance(query, exp.Subquery) else query, self._known)
        if len(right.names.names) != 1 or not isinstance(node.this, exp.Column):
            raise unsupported(self._text, node, "this form of IN", "column IN (SELECT column FROM ...)")
        pair = relation.names.column(self._text, node.this), right.names.names[0].column
        if kind == "anti":
            return self._not_in(node, pair, relation, right)
        return joined(self._text, node, kind, Condition([pair]), relation, right)

    def _not_in(
        self, node: Any, pair: tuple[str, str], relation: NamedStream, right: NamedStream
    ) -> NamedStream:
        """Return the rows of ``x NOT IN (...)``: none if one value is null, and of null ones those of no values."""
        counts = {"_all": Count(), "_known": Count("_value")}
        values = project(right.stream, {"_time": right.time, "_value": pair[1]})
        sums = then(values, "agg", WindowAggregate(Global(), counts), UNBOUNDED)
        found, [every, known] = beside(
            relation, NamedStream(sums, columns_of(sums.schema)), ["_all", "_known"]
        )
        all_known = pc.equal(pc.field(every), pc.field(known))
        given = pc.is_valid(pc.field(pair[0]))
        nothing = pc.is_null(pc.field(every))
        kept = pc.or_kleene(nothing, pc.and_kleene(all_known, given))
        return joined(
            self._text,
            node,
            "anti",
            Condition([pair]),
            replace(found, stream=found.stream.filter(kept)),
            right,
        )

    def _exists(self, node: Any, kind: str, relation: NamedStream) -> NamedStream:
        inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        source = inner.args.get("from_") or inner.args.get("from")
        if source is None or any(inner.args.get(part) for part in ("group", "joins", "having", "limit")):
            form = "EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND ...)"
            raise unsupported(self._text, node, "this form of EXISTS", form)
        right = self._planner.read(source.this, self._known)
        where = inner.args.get("where")
        condition = condition_of(self._text, None if where is None else where.this, relation, right)
        own = [part for part in condition.rest if self._is_of(part, right)]
        condition.rest = [part for part in condition.rest if part not in own]
        if own:
            predicate = Expressions(self._text, right.names, right.stream.schema).predicate(exp.and_(*own))
            right = replace(right, stream=right.stream.filter(predicate))
        return joined(self._text, node, kind, condition, relation, right)

    def _is_of(self, part: Any, relation: NamedStream) -> bool:
        """Tell whether a condition reads one relation alone."""
        return all(relation.names.columns(one) for one in part.find_all(exp.Column))
