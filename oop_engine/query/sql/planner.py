"""Planner: the statements of a text, one after the other; each SELECT with the streams that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from oop_engine.core.close_names import did_you_mean
from oop_engine.operators.triggers import Emit
from oop_engine.query.data_stream import DataStream
from oop_engine.query.finish import Finish
from oop_engine.query.registered import WINDOWS
from oop_engine.query.sql.fields import with_fields
from oop_engine.query.sql.file_options import FileOptions
from oop_engine.query.sql.aliases import resolve_aliases
from oop_engine.query.sql.joins.plan import JoinPlan
from oop_engine.query.sql.nested.having import with_having_around
from oop_engine.query.sql.nested.in_values import with_in_values
from oop_engine.query.sql.nested.subqueries import Subqueries
from oop_engine.query.sql.nested.value_rows import value_rows
from oop_engine.query.sql.reading.all_read import check_all_read
from oop_engine.query.sql.reading.forms import with_known_forms
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.reading.texts import Statement
from oop_engine.query.sql.reading.thesis import WINDOW
from oop_engine.query.sql.reading.versions import emit_of
from oop_engine.query.sql.relation import Name, NamedStream, Names
from oop_engine.query.sql.select import SelectPlan
from oop_engine.query.sql.tables import Tables
from oop_engine.query.sql.unions import union_part, union_queries, union_time, union_types
from oop_engine.query.sql.windows.bounds import with_plain_bounds
from oop_engine.query.sql.windows.brackets import bracket_of
from oop_engine.query.sql.windows.calls import of_call

__all__ = ["Planner"]

Known = Mapping[str, NamedStream]


class Planner:
    """Plans statements; later ones read the tables that earlier ones declare.  ``results``: streams by their sinks."""

    def __init__(self, text: str, streams: Mapping[str, Any], files: FileOptions) -> None:
        self.results: dict[str, DataStream] = {}
        self._text, self._tables = text, Tables(text, streams, files)
        self._sessions: dict[int, list[str]] = {}
        self._emit: Emit | None = None

    def take(self, statement: Statement) -> None:
        """Plan one statement; raises ``UsageError`` with its place for a form that is not known."""
        tree = with_known_forms(self._text, statement.tree)
        check_all_read(self._text, tree)
        self._sessions, self._emit = statement.sessions, emit_of(statement.emit)
        kind = str(tree.args.get("kind")).upper() if isinstance(tree, exp.Create) else ""
        if kind == "TABLE" and not isinstance(tree.expression, exp.Query):
            self._tables.create(tree, statement)
        elif kind in ("TABLE", "VIEW"):
            self._tables.declare(tree.this.name, self.query(tree.expression, {}))
        elif isinstance(tree, exp.Insert) and isinstance(tree.expression, exp.Query):
            self.results[tree.this.name] = _as_stream(self.query(tree.expression, {}))
        elif isinstance(tree, exp.Query | exp.Values):
            self.results["result"] = _as_stream(self.query(tree, {}))
        elif isinstance(tree, exp.Condition):
            raise mistake(self._text, tree, "no statement begins so: write SELECT ... FROM ...")
        else:
            forms = "CREATE TABLE, CREATE VIEW, INSERT INTO and SELECT are"
            shown = tree.expression if isinstance(tree, exp.Insert) else tree
            raise unsupported(self._text, shown, str(shown.key).upper(), forms)

    def query(self, node: Any, around: Known) -> NamedStream:
        """Return a SELECT or a UNION, with its WITH."""
        known = dict(around)
        with_ = node.args.get("with_") or node.args.get("with")
        for expression in [] if with_ is None else with_.expressions:
            known[expression.alias.lower()] = self._named(self.query(expression.this, known), expression)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, known)
        if isinstance(node, exp.Values):
            return value_rows(self._text, node)
        if isinstance(node, exp.Union):
            return self._union(node, known)
        if not isinstance(node, exp.Select):
            raise unsupported(self._text, node, str(node.key).upper(), "SELECT and UNION ALL are")
        if (around_groups := with_having_around(node)) is not None:
            return self.query(around_groups, around)
        relation = self.sources(node, known)
        with_plain_bounds(node, relation)
        resolve_aliases(node, relation.names)
        relation = Subqueries(self._text, self, known).behind(node, relation)
        with_in_values(self._text, node)
        return SelectPlan(self._text, node, self._emit, self, known).over(relation)

    def sources(self, node: Any, known: Known) -> NamedStream:
        """Return the FROM of a SELECT with its joins; a part of WHERE that an inner join takes is no longer there."""
        source = node.args.get("from_") or node.args.get("from")
        if source is None:
            raise mistake(self._text, node, "SELECT without FROM: name a stream or a file")
        relation = self.read(source.this, known)
        for join in node.args.get("joins") or []:
            relation = JoinPlan(self._text, self, known, node).behind(relation, join)
        with_fields(self._text, node, relation.named_columns)
        return relation

    def filtered(self, relation: NamedStream, parts: list[Any], known: Known) -> NamedStream:
        """Return the rows for which all conditions hold."""
        if not parts:
            return relation
        node = exp.Select(expressions=[exp.Star()], where=exp.Where(this=exp.and_(*parts, copy=False)))
        relation = Subqueries(self._text, self, known).behind(node, relation)
        with_in_values(self._text, node)
        return SelectPlan(self._text, node, None, self, known).filtered(relation)

    def _union(self, node: Any, known: Known) -> NamedStream:
        left, *others = (self.query(query, known) for query in union_queries(node))
        names = [name.name for name in left.names.names]
        for other in others:
            if len(names) != len(other.names.names):
                raise mistake(self._text, node, f"UNION of {len(names)} and {len(other.names.names)} columns")
            if left.finish.needs_all or other.finish.needs_all:
                raise unsupported(self._text, node, "ORDER BY and LIMIT inside UNION", "write them behind it")
        kinds = union_types(self._text, node, [left, *others])
        time = union_time(self._text, node, [left, *others], names)
        hidden = [] if time in names else [time]
        first, *rest = [union_part(relation, names, kinds, hidden, time) for relation in (left, *others)]
        union = first.union(*rest)
        shown = Names(tuple(Name("", name, name) for name in names))
        whole = NamedStream(union, shown, finish=Finish(frozenset(hidden)))
        outer = exp.select("*").distinct() if node.args.get("distinct") else exp.select("*")
        for part in ("order", "limit", "offset"):
            outer.set(part, node.args.get(part))
        return SelectPlan(self._text, outer, None, self, known).over(whole)

    def read(self, node: Any, known: Known) -> NamedStream:
        """Return the stream that FROM or JOIN names: a subquery, a window function, a table, a path."""
        if isinstance(node, exp.Subquery):
            return self._named(self._whole(self.query(node.this, known), node), node)
        if isinstance(node, exp.Values):
            return self._named(self.query(node, known), node)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
            return self._windowed(node.this, node.alias, known)
        if node.args.get("version"):
            raise unsupported(
                self._text, node, "AS OF in FROM", "JOIN b FOR SYSTEM_TIME AS OF a.ts ON a.k = b.k"
            )
        if isinstance(node, exp.Table) and node.name:
            return self._named(self._table(node, known), node)
        raise unsupported(
            self._text, node, "this form of FROM", "a table, a path in quotes, a subquery, TUMBLE(...)"
        )

    def _named(self, relation: NamedStream, node: Any) -> NamedStream:
        """Return a relation under the alias of ``node``, and its columns under those that the alias has."""
        named = renamed(relation, node.alias or node.name)
        alias = node.args.get("alias")
        columns = [column.name for column in ([] if alias is None else alias.args.get("columns") or [])]
        if len(columns) > len(named.names.names):
            words = f"{node.alias} has {len(named.names.names)} columns, and {len(columns)} names"
            raise mistake(self._text, node, words)
        moved = [replace(old, name=name) for old, name in zip(named.names.names, columns, strict=False)]
        return replace(named, names=Names((*moved, *named.names.names[len(columns) :])))

    def _whole(self, relation: NamedStream, node: Any) -> NamedStream:
        if relation.finish.needs_all:
            raise unsupported(
                self._text, node, "ORDER BY and LIMIT in a subquery", "ROW_NUMBER() OVER (...) <= n"
            )
        return relation

    def _table(self, node: Any, known: Known, time: str = "") -> NamedStream:
        relation = known.get(node.name.lower())
        return self._whole(self._tables.relation(node, time) if relation is None else relation, node)

    def _windowed(self, call: Any, alias: str, known: Known) -> NamedStream:
        """Return the relation of a call of a window function."""
        name, arguments = call.name.upper(), call.expressions
        if name == WINDOW:
            return self._bracketed(call, alias, known)
        if name not in WINDOWS:
            hint = did_you_mean(name, WINDOWS)
            raise mistake(
                self._text, call, f"no window function {name!r}; there are {', '.join(WINDOWS)}{hint}"
            )
        if len(arguments) < 3:
            raise mistake(self._text, call, f"{name} reads {name}(stream, ts, INTERVAL ...)")
        source, time = arguments[0], arguments[1]
        relation = self._source_of(source, time, known)
        if not isinstance(time, exp.Column) or relation.names.column(self._text, time) != relation.time:
            words = f"the event time of {source.name!r} is {relation.time!r}: windows are over that"
            raise mistake(self._text, time, words)
        windows = of_call(self._text, call, arguments[2:], relation.stream.schema)
        given = self._sessions.get(call.meta.get("start", -1), [])
        if "." in given:
            form, way_out = (
                "PARTITION BY of an expression in SESSION",
                "WITH c AS (SELECT *, ctx.user AS u FROM s)",
            )
            raise unsupported(self._text, call, form, f"{way_out}, SESSION(c PARTITION BY u, ...)")
        keys = tuple(relation.names.column(self._text, exp.column(key)) for key in given)
        return replace(renamed(relation, alias or source.name), windows=windows, keys=keys)

    def _bracketed(self, call: Any, alias: str, known: Known) -> NamedStream:
        """Return a relation with a window in brackets behind it."""
        source, words = call.expressions
        bracket = bracket_of(self._text, source, words.this)
        time = exp.column(bracket.time) if bracket.time else None
        relation = self._source_of(source, time, known)
        keys = tuple(relation.names.column(self._text, exp.column(key)) for key in bracket.keys)
        windows = bracket.windows
        return replace(
            renamed(relation, alias or source.alias_or_name), windows=windows, keys=keys, bracket=bracket
        )

    def _source_of(self, source: Any, time: Any, known: Known) -> NamedStream:
        if isinstance(source, exp.Subquery | exp.Select):
            return self._whole(self.query(source, known), source)
        return self._table(source, known, time.name if isinstance(time, exp.Column) else "")


def renamed(relation: NamedStream, alias: str) -> NamedStream:
    """Return a relation whose columns are those of a table of another name."""
    if not alias:
        return relation
    return replace(relation, names=Names(tuple(replace(name, table=alias) for name in relation.names.names)))


def _as_stream(relation: NamedStream) -> DataStream:
    """Return the stream of a relation, with the steps that its results need."""
    shown = {name.column for name in relation.names.names} | {relation.stream.schema.change}
    hidden = frozenset(name for name in relation.stream.schema.names if name not in shown)
    return DataStream(
        relation.stream.output, replace(relation.finish, hidden=hidden | relation.finish.hidden)
    )
