"""All read: a part of a statement that the planner does not look at is refused, and never left out in silence."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from oop_engine.query.sql.reading.mistakes import unsupported

__all__ = ["check_all_read"]

_WITH = {"with", "with_"}
_ORDERED = {"order", "limit", "offset"}
_READ: dict[type, set[str]] = {
    exp.Select: {
        *_WITH, *_ORDERED, "expressions", "from", "from_", "joins", "where", "group", "having", "qualify", "distinct",
    },
    exp.Union: {*_WITH, *_ORDERED, "this", "expression", "distinct"},
    exp.Subquery: {*_WITH, "this", "alias"},
    exp.Insert: {*_WITH, "this", "expression"},
    exp.With: {"expressions"},
    exp.CTE: {"this", "alias", "materialized"},
    exp.Table: {"this", "alias", "version"},
    exp.TableAlias: {"this", "columns"},
    exp.Join: {"this", "on", "using", "kind", "side", "method"},
    exp.Star: {"except", "except_", "replace", "rename"},
    exp.Group: {"expressions", "all", "rollup", "cube", "grouping_sets"},
    exp.Distinct: {"expressions", "on"},
    exp.Ordered: {"this", "desc", "nulls_first"},
    exp.Window: {"this", "partition_by", "order", "spec", "over"},
    exp.WindowSpec: {"kind", "start", "start_side", "end", "end_side"},
    exp.Limit: {"expression", "limit_options"},
    exp.Fetch: {"direction", "count", "limit_options"},
    exp.LimitOptions: {"rows"},
    exp.Cast: {"this", "to"},
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions", "query"},
    exp.DateBin: {"this", "expression", "unit", "origin"},
}  # fmt: skip
_FLAGS = {
    "desc", "nulls_first", "distinct", "all", "materialized", "safe", "typed", "coalesce", "big_int", "ignore_nulls",
    "is_left", "null_if_pos_overflow", "single_replace", "position", "negate", "scale", "kind", "side", "method",
    "quoted", "is_string", "ret_any", "binary", "is_null", "is_nvl", "decimals_truncate", "input_type_preserved",
    "this", "date_part_boundary", "is_end_exclusive",
}  # fmt: skip
"""Parts of functions that are no expressions, and that are read or say nothing about the answer."""
_WORDS = (exp.Literal, exp.Identifier, exp.Boolean, exp.Var, exp.DataType, exp.Anonymous, exp.Parameter)
_INSTEAD = {
    "PIVOTS": (
        "PIVOT or UNPIVOT",
        "sum(x) FILTER (WHERE k = 1) for each column, or UNION ALL of one SELECT for each",
    ),
    "LATERALS": ("LATERAL", "a subquery of one value, (SELECT max(b.x) FROM b WHERE b.k = a.k), or a join"),
    "SAMPLE": ("a sample", "WHERE id % 10 = 0, or leave it out"),
}
"""Parts that a word of the parser names, as people call them, and the way out."""
_WHOLE: dict[type, str] = {
    exp.Schema: "the columns in the order of SELECT",
}


def check_all_read(text: str, tree: Any) -> None:
    """Raise ``UsageError`` at the first part of a statement that the planner does not read."""
    for node in tree.walk():
        if isinstance(tree, exp.Insert) and type(node) in _WHOLE:
            raise unsupported(text, node, node.sql("duckdb")[:60], _WHOLE[type(node)])
        known = _READ.get(type(node))
        for name, part in node.args.items():
            is_flag = isinstance(part, str | bool) and not isinstance(node, _WORDS) and name not in _FLAGS
            if part and (is_flag if known is None else name not in known):
                form = name.strip("_").replace("_", " ").upper()
                raise unsupported(text, node, *_INSTEAD.get(form, (form, "leave it out")))
