"""Calls: the name and the arguments of a function in a parsed text, as SQL writes them.

The parser has a class for each function that it knows, with arguments under names of its own.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

__all__ = ["call_of"]

_NAMES = {
    "CEILING": "CEIL", "SUBSTR": "SUBSTRING", "CHAR_LENGTH": "LENGTH", "PREFIX": "STARTS_WITH",
    "SUFFIX": "ENDS_WITH",
    "TIME_TO_UNIX": "EPOCH", "TIME_TO_STR": "STRFTIME", "DAY_OF_WEEK": "DAYOFWEEK",
    "DAY_OF_WEEK_ISO": "ISODOW", "DAYOFWEEK_ISO": "ISODOW",
    "DAY_OF_YEAR": "DAYOFYEAR", "WEEK_OF_YEAR": "WEEK", "REGEXP_LIKE": "REGEXP_MATCHES", "DAY_OF_MONTH": "DAY",
    "POW": "POWER", "LCASE": "LOWER", "UCASE": "UPPER", "LEN": "LENGTH",
    "STR_TO_TIME": "STRPTIME", "DATE_FROM_PARTS": "MAKE_DATE", "TIMESTAMP_FROM_PARTS": "MAKE_TIMESTAMP",
    "SHA2": "SHA256", "RAND": "RANDOM",
}  # fmt: skip
_FLAGS = {
    "safe", "coalesce", "position", "big_int", "binary", "null_if_pos_overflow", "is_null", "is_nvl", "ret_any",
    "single_replace", "ignore_nulls", "charset", "collation", "is_left", "scale", "occurrence", "decimals_truncate",
}  # fmt: skip
_SCALES = {"None": "TO_TIMESTAMP", "3": "EPOCH_MS", "6": "MAKE_TIMESTAMP"}


def call_of(node: Any) -> tuple[str, list[Any]]:
    """Return the name of a function in capitals, and its arguments in their order.

    >>> import sqlglot
    >>> name, arguments = call_of(sqlglot.parse_one("lpad(a, 3, 'x')", read="duckdb"))
    >>> name, [one.sql() for one in arguments]
    ('LPAD', ['a', '3', "'x'"])
    """
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    if isinstance(node, exp.Trim):
        name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position")), "TRIM")
    elif isinstance(node, exp.Pad):
        name = "LPAD" if node.args.get("is_left") else "RPAD"
    elif isinstance(node, exp.UnixToTime):
        name = _SCALES.get(str(node.args.get("scale")), "UNIX_TO_TIME")
    elif isinstance(node, exp.Log) and isinstance(node.this, exp.Literal):
        return f"LOG{node.this.name}", [node.expression]
    elif isinstance(node, exp.Log):
        name = "LOG10"
    return _NAMES.get(name.upper(), name.upper()), _arguments(node)


def _arguments(node: Any) -> list[Any]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    parts: list[Any] = []
    for name, part in node.args.items():
        if name not in _FLAGS and part is not None and part is not False:
            parts += part if isinstance(part, list) else [part]
    return [argument for argument in parts if isinstance(argument, exp.Expression)]
