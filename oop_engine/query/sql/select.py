"""Select: one SELECT becomes a query, part by part in the order in which SQL evaluates them.

FROM, JOIN     relations: streams under the names of the query
WHERE          a filter
GROUP BY       keys and arguments become columns, then a window aggregate
HAVING         a filter of its results
SELECT         columns, computed ones, and such that later parts need and nobody sees
QUALIFY        the first rows of each partition
DISTINCT       each row once
ORDER BY       done with the results, when all have come
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc
from sqlglot import exp

from oop_engine.operators.triggers import Emit
from oop_engine.query.finish import Finish
from oop_engine.query.sql.aggregates import aggregates_in
from oop_engine.query.sql.aliases import resolve_aliases
from oop_engine.query.sql.grouping import Grouping
from oop_engine.query.sql.joins.condition import conjuncts
from oop_engine.query.sql.listing import items_of
from oop_engine.query.sql.nested.inner import Plans
from oop_engine.query.sql.nested.scalars import with_scalars
from oop_engine.query.sql.of_none import with_row_of_none
from oop_engine.query.sql.plans import NOT_DISTINCT, filtered, project
from oop_engine.query.sql.ranks import limit_of, ranked, ranks_in
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.relation import Name, NamedStream, Names
from oop_engine.query.sql.scalar.expressions import key_of
from oop_engine.query.sql.stage import BOUNDS, Item, Listed, Stage, inner_of
from oop_engine.query.sql.windows.bounds import with_bounds, with_plain_bounds
from oop_engine.query.sql.windows.frames import with_frames
from oop_engine.query.sql.windows.streams_of import lasting, stream_asked, stream_of

__all__ = ["SelectPlan"]


class SelectPlan:
    """Plans one parsed SELECT over a relation; ``planner`` plans those inside it, ``known`` are the parts of WITH."""

    def __init__(
        self, text: str, node: Any, emit: Emit | None, planner: Plans, known: Mapping[str, NamedStream]
    ) -> None:
        self._text, self._node, self._emit = text, node, emit
        self._planner, self._known = planner, known

    def over(self, relation: NamedStream) -> NamedStream:
        """Return the result of the SELECT over its FROM, or the stream of it that ISTREAM, DSTREAM or RSTREAM asks."""
        kind = stream_asked(self._text, self._node)
        with_plain_bounds(self._node, relation)
        resolve_aliases(self._node, relation.names)
        result = self._result(self.filtered(relation), kind)
        return result if kind is None else stream_of(self._text, self._node, kind, result, relation.windows)

    def _result(self, relation: NamedStream, kind: str | None) -> NamedStream:
        items = items_of(
            self._text, self._node, relation if kind is None else replace(relation, windows=None)
        )
        stage = self._grouped(Stage(relation), items, kind)
        stage = self._having(stage)
        later = (self._node.args.get(part) for part in ("qualify", "order"))
        nodes = [item.node for item in items] + [node for node in later if node is not None]
        return self._selected(with_frames(self._text, stage, nodes), items)

    # WHERE

    def filtered(self, relation: NamedStream) -> NamedStream:
        """Return the rows that WHERE leaves."""
        if (where := self._node.args.get("where")) is None:
            return relation
        rest = []
        for part in conjuncts(where.this):
            limit = None if relation.ranked is None else limit_of(part, relation.ranked.column)
            if limit is not None and relation.ranked is not None:
                relation = relation.ranked.first(limit)
            if limit is None or isinstance(part, exp.EQ):
                rest.append(part)
        return self._filtered(relation, rest, Stage(relation))

    def _filtered(self, relation: NamedStream, parts: list[Any], stage: Stage) -> NamedStream:
        if not parts:
            return relation
        self._no_bounds(relation, parts)
        whole = self._with_scalars(replace(stage, relation=relation), parts)
        relation, expressions = whole.relation, whole.expressions(self._text)
        predicates = [expressions.predicate(part) for part in parts]
        predicate = predicates[0]
        for other in predicates[1:]:
            predicate = pc.and_kleene(predicate, other)
        return replace(relation, stream=filtered(relation.stream, predicate))

    def _with_scalars(self, stage: Stage, nodes: list[Any]) -> Stage:
        return with_scalars(self._text, stage, nodes, self._planner, self._known)

    def _no_bounds(self, relation: NamedStream, parts: list[Any]) -> None:
        """Raise ``UsageError`` where a condition reads the bounds of windows that are not aggregated yet."""
        for part in parts:
            for column in part.find_all(exp.Column):
                if (
                    relation.windows is not None
                    and column.name.lower() in BOUNDS
                    and not relation.names.columns(column)
                ):
                    raise mistake(
                        self._text,
                        column,
                        f"{column.name} is known once windows are aggregated: write HAVING",
                    )

    # GROUP BY

    def _grouped(self, stage: Stage, items: list[Item], kind: str | None) -> Stage:
        group = self._node.args.get("group")
        nodes = [item.node for item in items] + [
            self._node.args[part] for part in ("having", "qualify", "order") if self._node.args.get(part)
        ]
        aggregates = {
            key_of(call, stage.relation.names): call for node in nodes for call in aggregates_in(node)
        }
        if group is None and not aggregates:
            return with_bounds(self._text, self._node, stage) if kind is None else lasting(stage)
        if group is not None and group.find(exp.GroupingSets, exp.Cube, exp.Rollup):
            raise unsupported(
                self._text, group, "GROUPING SETS, CUBE and ROLLUP", "UNION ALL of several GROUP BY"
            )
        keys = self._keys(group, items, stage.relation.names)
        aggregated = self._aggregated(stage, keys, aggregates, items)
        has_row = group is None and kind is None and self._emit is None
        return with_row_of_none(aggregated, aggregates) if has_row else aggregated

    def _keys(self, group: Any, items: list[Item], names: Names) -> list[Any]:
        """Return the keys: ordinals, aliases and ALL as the items that they mean."""
        if group is None:
            return []
        if group.args.get("all"):
            return [
                inner_of(item.node)
                for item in items
                if not aggregates_in(item.node) and not item.node.find(exp.Window)
            ]
        by_name = {item.name.lower(): item.node for item in items if isinstance(item.node, exp.Alias)}
        keys = []
        for node in group.expressions:
            if isinstance(node, exp.Literal) and not node.is_string:
                at = int(node.this)
                if not 1 <= at <= len(items):
                    raise mistake(self._text, node, f"GROUP BY {at}: the list has {len(items)} items")
                keys.append(inner_of(items[at - 1].node))
            elif self._is_alias(node, by_name, names):
                keys.append(inner_of(by_name[node.name.lower()]))
            else:
                keys.append(inner_of(node))
        return keys

    def _is_alias(self, node: Any, by_name: Mapping[str, Any], names: Names) -> bool:
        """Return whether a key is the alias of an item: columns of the relation come before those."""
        is_name = isinstance(node, exp.Column) and not node.table and node.name.lower() in by_name
        return is_name and not names.columns(node)

    def _aggregated(
        self, stage: Stage, keys: list[Any], aggregates: dict[str, Any], items: list[Item]
    ) -> Stage:
        relation = stage.relation
        wanted = {key_of(item.node, relation.names): item.name for item in items}
        grouping = Grouping(self._text, relation, self._emit)
        for node in keys:
            grouping.key(node)
        for key, node in aggregates.items():
            grouping.aggregate(key, node, wanted.get(key, ""))
        return grouping.stage(self._node.args.get("group"))

    def _having(self, stage: Stage) -> Stage:
        if (having := self._node.args.get("having")) is None:
            return stage
        relation = self._filtered(stage.relation, conjuncts(having.this), stage)
        return replace(stage, relation=relation)

    # the results

    def _selected(self, stage: Stage, items: list[Item]) -> NamedStream:
        qualify = self._node.args.get("qualify")
        if calls := ranks_in(items, qualify):
            finish = Finish(frozenset(), (), *self._limits())
            return self._distinct(
                ranked(self._text, stage, items, calls, qualify, finish, self._order(items))
            )
        if qualify is not None:
            if qualify.find(exp.Window) is None:
                raise mistake(
                    self._text, qualify, "QUALIFY needs ROW_NUMBER() OVER (...), or write WHERE or HAVING"
                )
            relation = self._filtered(stage.relation, conjuncts(qualify.this), stage)
            stage = replace(stage, relation=relation)
        return self._distinct(self._projected(stage, items))

    def _projected(self, stage: Stage, items: list[Item]) -> NamedStream:
        """Return the items as columns, with the event time, hidden if it is not among them."""
        stage = self._with_scalars(stage, [item.node for item in items])
        relation, listed = stage.relation, Listed(self._text, stage)
        for item in items:
            listed.columns[item.name] = listed.value(item.node)
        hidden = listed.keep(relation.time)
        change = relation.stream.schema.change
        order = []
        for node, down, nulls_first in self._order(items):
            name, added = (node, []) if isinstance(node, str) else listed.add(node, "_order")
            hidden += added
            order.append((name, down, nulls_first))
        stream = project(relation.stream, listed.columns)
        twins = frozenset(
            new for new, old in listed.columns.items() if isinstance(old, str) and old in relation.twins
        )
        names = Names(tuple(Name("", item.name, item.name) for item in items))
        if change is not None:
            names = Names((*names.names, Name("", change, change)))
        return NamedStream(
            stream, names, lasts=relation.lasts, twins=twins,
            finish=Finish(frozenset(hidden), tuple(order), *self._limits()),
        )  # fmt: skip

    def _order(self, items: list[Item]) -> list[tuple[Any, bool, bool]]:
        """Return the parts of ORDER BY: the name of an item or a parsed expression, downwards, nulls first."""
        orders: list[tuple[Any, bool, bool]] = []
        node = self._node.args.get("order")
        by_name = {item.name.lower(): item.name for item in items}
        by_text = {inner_of(item.node).sql("duckdb"): item.name for item in items}
        for ordered in [] if node is None else node.expressions:
            by, how = ordered.this, (bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first")))
            if isinstance(by, exp.Literal) and not by.is_string:
                if not 1 <= int(by.this) <= len(items):
                    raise mistake(self._text, by, f"ORDER BY {by.this}: the list has {len(items)} items")
                orders.append((items[int(by.this) - 1].name, *how))
            elif isinstance(by, exp.Column) and not by.table and by.name.lower() in by_name:
                orders.append((by_name[by.name.lower()], *how))
            else:
                orders.append((by_text.get(by.sql("duckdb"), by), *how))
        return orders

    def _limits(self) -> tuple[int | None, int]:
        limits = []
        for part in ("limit", "offset"):
            node = self._node.args.get(part)
            inner = None if node is None else node.args.get("count") or node.args.get("expression")
            if inner is not None and not (isinstance(inner, exp.Literal) and inner.this.isdigit()):
                raise mistake(self._text, node, f"{part.upper()} takes a number")
            limits.append(None if inner is None else int(inner.this))
        return limits[0], limits[1] or 0

    def _distinct(self, relation: NamedStream) -> NamedStream:
        distinct = self._node.args.get("distinct")
        if distinct is None:
            return relation
        if distinct.args.get("on"):
            raise unsupported(self._text, distinct, "DISTINCT ON", "ROW_NUMBER() OVER (PARTITION BY ...) = 1")
        shown = relation.finish.shown(relation.stream.schema.names)
        if any(name not in shown for name, *_ in relation.finish.order):
            words = "ORDER BY of SELECT DISTINCT reads items of the list: add this one to it"
            raise mistake(self._text, self._node.args["order"], words)
        if relation.time in shown:
            stream = (
                relation.stream
                if len(shown) == len(relation.stream.schema.names)
                else relation.stream.select(*shown)
            )
            return replace(relation, stream=stream.distinct(), ranked=None)
        grouping = Grouping(self._text, replace(relation, windows=None), None, NOT_DISTINCT)
        for name in relation.names.names:
            grouping.key(exp.column(exp.to_identifier(name.name, quoted=True)))
        stage = grouping.stage()
        listed = Listed(self._text, stage)
        listed.columns = {name.name: key for name, key in zip(relation.names.names, grouping.by, strict=True)}
        hidden = listed.keep(stage.relation.time)
        stream = project(stage.relation.stream, listed.columns)
        finish = replace(relation.finish, hidden=frozenset(hidden))
        return replace(relation, stream=stream, finish=finish, ranked=None)
