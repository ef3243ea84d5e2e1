"""Planner: the statements of a text, one after the other; each SELECT with the streams that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from oop_engine.core.close_names import did_you_mean
from oop_engine.operators.joining.bands import Bands
from oop_engine.operators.triggers import Emit
from oop_engine.query.data_stream import DataStream
from oop_engine.query.finish import Finish
from oop_engine.query.registered import WINDOWS
from oop_engine.query.sql.joins.condition import check_kind, condition_of, conjuncts
from oop_engine.query.sql.joins.joined import joined
from oop_engine.query.sql.plans import project
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.reading.texts import Statement
from oop_engine.query.sql.reading.thesis import TUMBLING, WINDOW
from oop_engine.query.sql.reading.versions import emit_of
from oop_engine.query.sql.relation import Name, NamedStream, Names
from oop_engine.query.sql.select import SelectPlan
from oop_engine.query.sql.subqueries import Subqueries
from oop_engine.query.sql.tables import Tables
from oop_engine.query.sql.windows.brackets import bracket_of
from oop_engine.query.sql.windows.calls import of_call

__all__ = ["Planner"]

Known = Mapping[str, NamedStream]


class Planner:
    """Plans statements; later ones read the tables that earlier ones declare.  ``results``: streams by their sinks."""

    def __init__(self, text: str, streams: Mapping[str, Any]) -> None:
        self.results: dict[str, DataStream] = {}
        self._text, self._tables = text, Tables(text, streams)
        self._sessions: dict[int, list[str]] = {}
        self._emit: Emit | None = None

    def take(self, statement: Statement) -> None:
        """Plan one statement; raises ``UsageError`` with its place for a form that is not known."""
        tree = statement.tree
        self._sessions, self._emit = statement.sessions, emit_of(statement.emit)
        kind = str(tree.args.get("kind")).upper() if isinstance(tree, exp.Create) else ""
        if kind == "TABLE" and not isinstance(tree.expression, exp.Query):
            self._tables.create(tree, statement)
        elif kind in ("TABLE", "VIEW"):
            self._tables.declare(tree.this.name, self.query(tree.expression, {}))
        elif isinstance(tree, exp.Insert):
            self.results[tree.this.name] = _as_stream(self.query(tree.expression, {}))
        elif isinstance(tree, exp.Query):
            self.results["result"] = _as_stream(self.query(tree, {}))
        else:
            forms = "CREATE TABLE, CREATE VIEW, INSERT INTO and SELECT are"
            raise unsupported(self._text, tree, str(tree.key).upper(), forms)

    def query(self, node: Any, around: Known) -> NamedStream:
        """Return a SELECT or a UNION, with its WITH."""
        known = dict(around)
        with_ = node.args.get("with_") or node.args.get("with")
        for one in [] if with_ is None else with_.expressions:
            known[one.alias.lower()] = self.query(one.this, known)
        if isinstance(node, exp.Subquery):
            return self.query(node.this, known)
        if isinstance(node, exp.Union):
            return self._union(node, known)
        if not isinstance(node, exp.Select):
            raise unsupported(self._text, node, str(node.key).upper(), "SELECT and UNION ALL are")
        source = node.args.get("from_") or node.args.get("from")
        if source is None:
            raise mistake(self._text, node, "SELECT without FROM: name a stream or a file")
        relation = self.read(source.this, known)
        for join in node.args.get("joins") or []:
            relation = self._join(relation, join, known, node)
        relation = Subqueries(self._text, self, known).behind(node, relation)
        return SelectPlan(self._text, node, self._emit, self, known).over(relation)

    def _union(self, node: Any, known: Known) -> NamedStream:
        left, *others = (self.query(one, known) for one in _parts_of(node))
        names = [one.name for one in left.names.names]
        hidden = [] if left.time in names else [left.time]
        for other in others:
            if len(names) != len(other.names.names):
                raise mistake(self._text, node, f"UNION of {len(names)} and {len(other.names.names)} columns")
            if left.finish.needs_all or other.finish.needs_all:
                raise unsupported(self._text, node, "ORDER BY and LIMIT inside UNION", "write them behind it")
        rest = [_under(names, hidden, one, left.time) for one in others]
        found = project(left.stream, {name: name for name in [*names, *hidden]}).union(*rest)
        shown = Names(tuple(Name("", name, name) for name in names))
        whole = NamedStream(found, shown, finish=Finish(frozenset(hidden)))
        behind = exp.select("*").distinct() if node.args.get("distinct") else exp.select("*")
        for part in ("order", "limit", "offset"):
            behind.set(part, node.args.get(part))
        return SelectPlan(self._text, behind, None, self, known).over(whole)

    def read(self, node: Any, known: Known) -> NamedStream:
        """Return the stream that FROM or JOIN names: a subquery, a window function, a table, a path."""
        if isinstance(node, exp.Subquery):
            return renamed(self._whole(self.query(node.this, known), node), node.alias)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
            return self._windowed(node.this, node.alias, known)
        if isinstance(node, exp.Table):
            return renamed(self._table(node, known), node.alias or node.name)
        raise unsupported(
            self._text, node, "this form of FROM", "a table, a path in quotes, a subquery, TUMBLE(...)"
        )

    def _whole(self, relation: NamedStream, node: Any) -> NamedStream:
        if relation.finish.needs_all:
            raise unsupported(
                self._text, node, "ORDER BY and LIMIT in a subquery", "ROW_NUMBER() OVER (...) <= n"
            )
        return relation

    def _table(self, node: Any, known: Known, time: str = "") -> NamedStream:
        found = known.get(node.name.lower())
        return self._whole(self._tables.relation(node, time) if found is None else found, node)

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
        of, time = arguments[0], arguments[1]
        relation = self._source_of(of, time, known)
        if not isinstance(time, exp.Column) or relation.names.column(self._text, time) != relation.time:
            words = f"the event time of {of.name!r} is {relation.time!r}: windows are over that"
            raise mistake(self._text, time, words)
        windows = of_call(self._text, call, arguments[2:], relation.stream.schema)
        given = self._sessions.get(call.meta.get("start", -1), [])
        keys = tuple(relation.names.column(self._text, exp.column(key)) for key in given)
        return replace(renamed(relation, alias or of.name), windows=windows, keys=keys)

    def _bracketed(self, call: Any, alias: str, known: Known) -> NamedStream:
        """Return a relation with a window in brackets behind it."""
        of, words = call.expressions
        bracket = bracket_of(self._text, of, words.this)
        time = exp.column(bracket.time) if bracket.time else None
        relation = self._source_of(of, time, known)
        keys = tuple(relation.names.column(self._text, exp.column(key)) for key in bracket.keys)
        windows = bracket.windows
        return replace(
            renamed(relation, alias or of.alias_or_name), windows=windows, keys=keys, bracket=bracket
        )

    def _source_of(self, of: Any, time: Any, known: Known) -> NamedStream:
        if isinstance(of, exp.Subquery | exp.Select):
            return self._whole(self.query(of, known), of)
        return self._table(of, known, time.name if isinstance(time, exp.Column) else "")

    def _join(self, left: NamedStream, join: Any, known: Known, select: Any) -> NamedStream:
        right = self.read(join.this, known)
        band = self._band(join, left, right)
        left, right = (replace(side, windows=None, bracket=None) for side in (left, right))
        kind, on = check_kind(self._text, join), join.args.get("on")
        if using := join.args.get("using"):
            on = exp.and_(*(exp.EQ(this=_of(one, left), expression=_of(one, right)) for one in using))
        if kind == "inner":
            on = self._with_where(on, select, left, right)
        if on is None and band is None:
            raise unsupported(self._text, join, "a join without a condition", "JOIN ... ON a.k = b.k AND ...")
        condition = condition_of(self._text, on, left, right)
        condition.band = condition.band or band
        return joined(self._text, join, kind, condition, left, right)

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

    def _with_where(self, on: Any, select: Any, left: NamedStream, right: NamedStream) -> Any:
        """Return the condition of an inner join with the parts of WHERE about both sides, which are taken out of it."""
        where = select.args.get("where")
        parts = [] if where is None else conjuncts(where.this)
        both = [
            one
            for one in parts
            if _is_tumbling(one) or (not one.find(exp.Query) and _is_of(one, left, right))
        ]
        rest = [one for one in parts if one not in both]
        select.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
        together = [*([] if on is None else [on]), *both]
        return exp.and_(*together) if together else None


def _parts_of(node: Any) -> list[Any]:
    """Return the queries of UNION ALL of several, one after the other."""
    inner = node.this
    plain = isinstance(inner, exp.Union) and not any(
        inner.args.get(one) for one in ("distinct", "order", "limit", "offset", "with_", "with")
    )
    return [*(_parts_of(inner) if plain else [inner]), node.expression]


def _under(names: list[str], hidden: list[str], other: NamedStream, time: str) -> DataStream:
    """Return a part of UNION with the names of the first one, and its event time."""
    columns = {new: one.column for new, one in zip(names, other.names.names, strict=True)}
    columns |= dict.fromkeys(hidden, other.time)
    return project(other.stream, columns, progressing=time)


def _is_tumbling(node: Any) -> bool:
    return isinstance(node, exp.Anonymous) and node.name == TUMBLING


def _is_of(node: Any, left: NamedStream, right: NamedStream) -> bool:
    """Tell whether a condition reads columns of both sides, and of no other."""
    columns = list(node.find_all(exp.Column))
    sides = [[bool(side.names.columns(one)) for side in (left, right)] for one in columns]
    return all(map(any, sides)) and all(
        any(one[side] and not one[1 - side] for one in sides) for side in (0, 1)
    )


def renamed(relation: NamedStream, alias: str) -> NamedStream:
    """Return a relation whose columns are those of a table of another name."""
    if not alias:
        return relation
    return replace(relation, names=Names(tuple(replace(one, table=alias) for one in relation.names.names)))


def _of(node: Any, relation: NamedStream) -> Any:
    """Return a column of USING as one of a relation."""
    table = next((one.table for one in relation.names.names if one.name.lower() == node.name.lower()), "")
    return exp.column(exp.to_identifier(node.name), table=table or None)


def _as_stream(relation: NamedStream) -> DataStream:
    """Return the stream of a relation, with the steps that its results need."""
    shown = {one.column for one in relation.names.names} | {relation.stream.schema.change}
    hidden = frozenset(name for name in relation.stream.schema.names if name not in shown)
    return DataStream(
        relation.stream.output, replace(relation.finish, hidden=hidden | relation.finish.hidden)
    )
