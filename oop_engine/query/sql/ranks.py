"""Ranks: ``ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...)``, with a limit in QUALIFY or in an outer WHERE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from oop_engine.operators.top_n import TopN
from oop_engine.query.finish import Finish
from oop_engine.query.sql.joins.condition import conjuncts
from oop_engine.query.sql.plans import project, then
from oop_engine.query.sql.reading.mistakes import mistake, unsupported
from oop_engine.query.sql.relation import Name, NamedStream, Names, RankColumn
from oop_engine.query.sql.scalar.expressions import key_of
from oop_engine.query.sql.stage import Item, Listed, Stage, inner_of

__all__ = ["RANKS", "limit_of", "ranked", "ranks_in"]

RANKS = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}
Order = Sequence[tuple[Any, bool, bool]]
_UNBOUNDED = (
    "ranks without the window among the keys of PARTITION BY are known only at the end of the stream: "
    "add window_end to PARTITION BY, aggregate a window with max or arg_max, or read a source that ends"
)


def ranks_in(items: list[Item], qualify: Any) -> list[Any]:
    """Return the ranks of a SELECT list and of QUALIFY."""
    nodes = [item.node for item in items] + ([] if qualify is None else [qualify])
    return [window for node in nodes for window in node.find_all(exp.Window) if type(window.this) in RANKS]


def ranked(
    text: str, stage: Stage, items: list[Item], calls: list[Any], qualify: Any, finish: Finish, order: Order
) -> NamedStream:
    """Return the first rows of each partition, with their places where the list asks for them.

    ``finish`` has the limits of the SELECT, ``order`` the parts of its ORDER BY: of the list by name, others parsed.
    """
    if len({key_of(call, stage.relation.names) for call in calls}) > 1:
        raise unsupported(text, calls[1], "two different ranks", "take each apart in WITH")
    with_rank = [
        item for item in items if any(type(window.this) in RANKS for window in item.node.find_all(exp.Window))
    ]
    for item in with_rank:
        if not isinstance(inner_of(item.node), exp.Window):
            raise unsupported(text, item.node, "an expression of a rank", "compute it in an outer SELECT")
    alias = with_rank[0].name if with_rank else "_rank"
    ranking = _Ranking(text, stage, items, with_rank, alias)
    finish = replace(finish, order=ranking.ordered(order, calls[0]))
    limit = ranking.limit_of(qualify)
    first = ranking.first(limit, calls[0], finish)
    if limit is not None:
        return first
    return replace(first, ranked=RankColumn(alias, lambda n: ranking.first(n, calls[0], finish)))


class _Ranking:
    """The columns that a rank needs, and the operator behind them."""

    def __init__(self, text: str, stage: Stage, items: list[Item], with_rank: list[Item], alias: str) -> None:
        self._text, self._relation, self._alias = text, stage.relation, alias
        self._known = stage.known or stage.relation.names
        self._shown = [item.name for item in items]
        self._listed = Listed(text, stage)
        for item in items:
            if item not in with_rank:
                self._listed.columns[item.name] = self._listed.value(item.node)
        self._extra = self._listed.keep(self._relation.time)

    def ordered(self, order: Order, call: Any) -> tuple[tuple[str, bool, bool], ...]:
        """Return the columns of an ORDER BY; the rank ``call`` is one of them."""
        orders = []
        for node, down, nulls_first in order:
            is_rank = not isinstance(node, str) and key_of(node, self._known) == key_of(call, self._known)
            name = (
                self._alias
                if is_rank
                else node
                if isinstance(node, str)
                else self._listed.add(node, "_order")[0]
            )
            orders.append((name, down, nulls_first))
        return tuple(orders)

    def limit_of(self, qualify: Any) -> int | None:
        """Return the n of QUALIFY."""
        smallest = None
        for part in [] if qualify is None else conjuncts(qualify.this):
            if (limit := limit_of(part, self._alias)) is None or (isinstance(part, exp.EQ) and limit > 1):
                raise mistake(self._text, part, "QUALIFY reads ROW_NUMBER() OVER (...) <= 3")
            smallest = limit if smallest is None else min(smallest, limit)
        return smallest

    def first(self, n: int | None, call: Any, finish: Finish) -> NamedStream:
        """Return the first ``n`` rows of each partition; None: all, with their places."""
        by = [self._named(partition) for partition in call.args.get("partition_by") or []]
        ordered = call.args.get("order")
        order = [
            part
            for expression in ([] if ordered is None else ordered.expressions)
            for part in self._order(expression)
        ]
        time = str(self._listed.name_of(self._relation.time))
        timed = any(self._is_time(name) for name in by)
        keys = [name for name in dict.fromkeys(by) if name != time]
        operator = TopN(n, order or [time], keys, timed=timed, rank=self._alias, ties=RANKS[type(call.this)])
        source = project(self._relation.stream, self._listed.columns)
        stream = then(source, "rank", operator, None if timed else _UNBOUNDED)
        stream = project(stream, {name: name for name in dict.fromkeys([*self._shown, *stream.columns])})
        hidden = frozenset(name for name in stream.schema.names if name not in self._shown)
        names = Names(tuple(Name("", name, name) for name in self._shown))
        return NamedStream(stream, names, finish=replace(finish, hidden=hidden))

    def _order(self, node: Any) -> list[str]:
        """Return the columns of one part of ORDER BY; nulls are last, unless NULLS FIRST asks otherwise."""
        own = f"{'-' if node.args.get('desc') else ''}{self._named(node.this)}"
        return (
            [f"-{self._named(exp.Is(this=node.this, expression=exp.Null()))}", own]
            if node.args.get("nulls_first")
            else [own]
        )

    def _named(self, node: Any) -> str:
        return self._listed.add(node, "_part")[0]

    def _is_time(self, name: str) -> bool:
        """Return whether rows with equal values of a column have one event time."""
        column = self._listed.columns[name]
        return isinstance(column, str) and column in {self._relation.time, *self._relation.twins}


def limit_of(part: Any, alias: str) -> int | None:
    """Return n of ``rank <= n``, ``rank < n + 1`` and ``rank = n``, 1 or more; None: it is another condition."""
    if not isinstance(part, exp.LTE | exp.LT | exp.EQ):
        return None
    ranked_by, number = part.this, part.expression
    is_rank = isinstance(ranked_by, exp.Window) or (
        isinstance(ranked_by, exp.Column) and ranked_by.name.lower() == alias.lower()
    )
    if not is_rank or not isinstance(number, exp.Literal) or not number.this.isdigit():
        return None
    first = int(number.this) - isinstance(part, exp.LT)
    return first if first > 0 else None
