"""Forms: ways to write a query that stand for others, which the planner reads.

``x = ANY (SELECT y ...)``         x IN (SELECT y ...)
``x > ALL (SELECT y ...)``         comparisons with min(y) and max(y), null where a null decides
``(a, b) IN ((1, 2), (3, 4))``     a IS NOT DISTINCT FROM 1 AND ... OR ..., as DuckDB compares rows
``OVER w ... WINDOW w AS (...)``   OVER (...)
``x IN (VALUES (1), (2))``         x IN (1, 2)
``string_agg(x, ', ')``            the texts of list(x, n), joined
``DISTINCT ON (k) ... ORDER BY``   QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ...) = 1
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from oop_engine.query.sql.nested.inner import has_aggregates, is_plain, select_of
from oop_engine.query.sql.reading.mistakes import unsupported
from oop_engine.query.sql.stage import inner_of, item_name

__all__ = ["JOINED", "MOST_JOINED", "with_known_forms"]

JOINED = "_JOINED"
"""The function that joins the texts of a list."""
MOST_JOINED = 32_767
"""Texts that ``string_agg`` takes of a group: as many as a list of ``Collect`` may have."""
_INVERSE = {
    exp.GT: exp.LTE, exp.GTE: exp.LT, exp.LT: exp.GTE, exp.LTE: exp.GT, exp.EQ: exp.NEQ, exp.NEQ: exp.EQ,
}  # fmt: skip

_CHANGED = (exp.Select, exp.GroupConcat, exp.In, *_INVERSE)


def with_known_forms(text: str, tree: Any) -> Any:
    """Return a statement in the forms that the planner reads; ``tree`` may change.

    Raises ``UsageError`` with its place for one that has no such form.
    """
    changed_nodes = [node for node in tree.walk() if isinstance(node, _CHANGED)]
    for node in changed_nodes:
        if isinstance(node, exp.Select):
            _with_windows(text, node)
            _with_first_rows(text, node)
    for kind, way in ((exp.GroupConcat, _with_joined), (tuple(_INVERSE), _with_any), (exp.In, _with_rows)):
        for node in changed_nodes:
            if isinstance(node, kind):
                way(text, node)
    return tree


def _with_windows(text: str, select: Any) -> None:
    """Write the windows of WINDOW where OVER names them."""
    named = {window.name.lower(): window for window in select.args.get("windows") or []}
    for call in list(select.find_all(exp.Window)) if named else []:
        if (name := call.args.get("alias")) is None or call.find_ancestor(exp.Select) is not select:
            continue
        if (definition := named.get(name.name.lower())) is None:
            raise unsupported(text, call, f"OVER {name.name}", f"there are {', '.join(named)} behind WINDOW")
        call.set("alias", None)
        for part in ("partition_by", "order", "spec"):
            own = definition.args.get(part)
            copies = [clause.copy() for clause in own] if isinstance(own, list) else own and own.copy()
            call.set(part, copies)
    if named:
        select.set("windows", None)


def _with_first_rows(text: str, select: Any) -> None:
    """Write DISTINCT ON as the first row of each partition."""
    distinct, order = select.args.get("distinct"), select.args.get("order")
    if distinct is None or (keys := distinct.args.get("on")) is None:
        return
    if order is None or select.args.get("qualify") is not None:
        way_out = "QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1, or DISTINCT ON (k) ... ORDER BY k, ts"
        raise unsupported(text, distinct, "DISTINCT ON without an order", way_out)
    rank = exp.Window(
        this=exp.RowNumber(),
        partition_by=[key.copy() for key in _parts(keys)],
        order=order.copy(),
        over="OVER",
    )
    select.set("distinct", None)
    select.set("qualify", exp.Qualify(this=exp.EQ(this=rank, expression=exp.Literal.number(1))))


def _parts(node: Any) -> list[Any]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [inner_of(node)]


def _with_joined(text: str, node: Any) -> None:
    """Write ``string_agg`` as a list whose texts are joined; under its own name."""
    whole: Any = node.parent if isinstance(node.parent, exp.Filter) else node
    if isinstance(whole.parent, exp.Window):
        raise unsupported(text, node, "string_agg OVER", "GROUP BY a window")
    if isinstance(node.this, exp.Distinct):
        form = "WITH c AS (SELECT DISTINCT k, x FROM s) SELECT k, string_agg(x, ',') FROM c GROUP BY k"
        raise unsupported(text, node, "string_agg(DISTINCT ...)", f"each value once before, {form}")
    name = item_name(whole) if isinstance(whole.parent, exp.Select) else ""
    most = exp.Literal.number(MOST_JOINED)
    listed: Any = exp.ArrayAgg(this=node.this.copy(), nulls_excluded=most)
    if whole is not node:
        listed = exp.Filter(this=listed, expression=whole.expression.copy())
    sign = node.args.get("separator") or exp.Literal.string(",")
    made: Any = exp.Anonymous(this=JOINED, expressions=[listed, sign.copy()])
    whole.replace(exp.alias_(made, name, quoted=True) if name else made)


def _with_any(text: str, node: Any) -> None:
    """Write a comparison with ANY or ALL values of a query as IN, or with the least and the largest."""
    quantified = node.expression
    if not isinstance(quantified, exp.Any | exp.All):
        return
    values = quantified.this.unnest()
    is_all = isinstance(quantified, exp.All)
    if isinstance(values, exp.Array):
        parts = [
            type(node)(this=node.this.copy(), expression=expression.copy())
            for expression in values.expressions
        ]
        node.replace(
            exp.Paren(this=(exp.and_ if is_all else exp.or_)(*parts)) if parts else exp.Boolean(this=is_all)
        )
        return
    inner = select_of(values)
    if not isinstance(inner, exp.Query) or len(inner.selects) != 1 or isinstance(inner.selects[0], exp.Star):
        raise unsupported(
            text, node, "this form of ANY and ALL", "x > ALL (SELECT y FROM s), x = ANY ([1, 2])"
        )
    if type(node) is (exp.NEQ if is_all else exp.EQ):
        membership: Any = exp.In(this=node.this.copy(), query=exp.Subquery(this=inner.copy()))
        node.replace(exp.Not(this=membership) if is_all else membership)
        return
    made = _some(_INVERSE[type(node)] if is_all else type(node), node.this, inner)
    node.replace(exp.Paren(this=exp.Not(this=made) if is_all else made))


def _some(sign: Any, operand: Any, inner: Any) -> Any:
    """Return whether a value compares with some value of a query: null where only a null could make it true."""

    def value(call: Any) -> Any:
        return exp.Subquery(this=_asked(inner, call))

    ends = {
        exp.GT: [exp.Min], exp.GTE: [exp.Min], exp.LT: [exp.Max], exp.LTE: [exp.Max], exp.NEQ: [exp.Min, exp.Max],
    }  # fmt: skip
    true = exp.or_(
        *(
            sign(this=operand.copy(), expression=value(lambda column, e=end: e(this=column)))
            for end in ends[sign]
        )
    )
    number = value(lambda column: exp.Count(this=exp.Star()))
    known = value(lambda column: exp.Count(this=column))
    is_open = exp.or_(
        exp.GT(this=number, expression=known),
        exp.and_(
            exp.Is(this=operand.copy(), expression=exp.Null()),
            exp.GT(this=number.copy(), expression=exp.Literal.number(0)),
        ),
    )
    return exp.Paren(this=exp.Case().when(true, exp.true()).when(is_open, exp.Null()).else_(exp.false()))


def _asked(inner: Any, call: Any) -> Any:
    """Return an aggregate over the values of a query."""
    if is_plain(inner) and not has_aggregates(inner) and not inner.args.get("distinct"):
        query = inner.copy()
        query.set("expressions", [call(inner_of(inner.selects[0]).copy())])
        query.set("order", None)
        return query
    alias = exp.TableAlias(this=exp.to_identifier("_any"), columns=[exp.to_identifier("_value")])
    return exp.select(call(exp.column("_value", table="_any"))).from_(
        exp.Subquery(this=inner.copy(), alias=alias)
    )


def _only(row: Any) -> Any:
    """Return the value of a row of one, or the row."""
    return row.expressions[0] if isinstance(row, exp.Tuple) and len(row.expressions) == 1 else row


def _with_rows(text: str, node: Any) -> None:
    """Write a list of rows as comparisons, in which a null equals a null."""
    if len(node.expressions) == 1 and isinstance(values := node.expressions[0], exp.Values):
        node.set("expressions", [_only(expression) for expression in values.expressions])
    rows = [inner_of(expression) for expression in node.expressions]
    if not isinstance(node.this, exp.Tuple) or not all(isinstance(row, exp.Tuple) for row in rows):
        return
    parts = node.this.expressions
    if not rows or any(len(row.expressions) != len(parts) for row in rows):
        return
    same = [
        exp.and_(
            *(
                exp.NullSafeEQ(this=a.copy(), expression=b.copy())
                for a, b in zip(parts, row.expressions, strict=True)
            )
        )
        for row in rows
    ]
    node.replace(exp.Paren(this=exp.or_(*same)))
