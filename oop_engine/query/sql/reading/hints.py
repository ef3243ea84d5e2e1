"""Hints: the way out of mistakes that people make who come from another dialect, or from none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sqlglot import exp

from oop_engine.core.close_names import did_you_mean

__all__ = ["INSTEAD_OF", "expected", "is_path", "is_text_meant", "missing_file", "open_quote", "unexpected"]

INSTEAD_OF = {
    **dict.fromkeys(
        ("TO_CHAR", "DATE_FORMAT", "FORMAT_DATE", "FORMAT_TIMESTAMP"), "strftime(ts, '%Y-%m-%d')"
    ),
    **dict.fromkeys(("TO_DATE", "STR_TO_DATE", "PARSE_TIMESTAMP", "PARSE_DATE"), "strptime(x, '%d.%m.%Y')"),
    **dict.fromkeys(("ISNULL", "NVL"), "coalesce(x, 0), or x IS NULL"),
    **dict.fromkeys(("IFF", "IIF"), "CASE WHEN x > 3 THEN 'a' ELSE 'b' END"),
    **dict.fromkeys(("DATEADD", "TIMESTAMPADD", "ADD_MONTHS"), "ts + INTERVAL '1' DAY"),
    **dict.fromkeys(("UNIX_TIMESTAMP", "TO_UNIXTIME"), "epoch(ts)"),
    "FROM_UNIXTIME": "to_timestamp(x)",
    **dict.fromkeys(("LOCATE", "CHARINDEX"), "strpos(text, 'part')"),
    **dict.fromkeys(("TO_SECONDS", "TO_MINUTES", "TO_HOURS", "TO_DAYS"), "x * INTERVAL '1' SECOND"),
    **dict.fromkeys(("TUMBLE_START", "HOP_START", "SESSION_START"), "window_start"),
    **dict.fromkeys(("TUMBLE_END", "HOP_END", "SESSION_END"), "window_end"),
    **dict.fromkeys(("TUMBLE_ROWTIME", "HOP_ROWTIME", "SESSION_ROWTIME"), "window_time"),
    **dict.fromkeys(("TUMBLINGWINDOW", "WINDOW"), "FROM TUMBLE(s, ts, INTERVAL '1' MINUTE)"),
    **dict.fromkeys(
        ("HOPPINGWINDOW", "SLIDINGWINDOW"), "FROM HOP(s, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE)"
    ),
    **dict.fromkeys(("SESSIONWINDOW", "SESSION_WINDOW"), "FROM SESSION(s, ts, INTERVAL '5' MINUTE)"),
    **dict.fromkeys(("ARRAY", "STRUCT", "EXPLODE"), "one value a column; only list(x, 100) makes lists"),
}
"""Functions of other dialects, in capitals, and their form here."""
_KEYWORDS = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "JOIN",
    "LIMIT",
    "UNION",
    "QUALIFY",
    "INTERVAL",
)
_UNQUOTED = re.compile(r"(?i)\b(?:FROM|JOIN)\s+[^\s'\"(]*\s*[^\s'\"(]*\.(?:csv|parquet|json|jsonl|arrow)\b")
_LENGTH = re.compile(r"(?i)[,(]\s*(\d+)\s+((?:millisecond|second|minute|hour|day|week)s?)\b")
_BEGIN = ("SELECT", "WITH", "CREATE", "INSERT", "FROM")


def is_path(name: str) -> bool:
    """Return whether a name in a text is that of a file, without its quotes."""
    return _UNQUOTED.search(f"FROM {name}") is not None


def unexpected(text: str, token: str, before: str) -> str:
    """Return the words for a token that does not fit, with the one that may be meant; ``before`` stands before it.

    >>> unexpected("SELECT * FORM t", "t", "SELECT * FORM ")
    "Unexpected token 't'; did you mean FROM?"
    """
    words = f"Unexpected token {token!r}" if token else "Unexpected token"
    if (begin := text.split()[0]).upper() not in _BEGIN and (meant := did_you_mean(begin, _BEGIN)):
        return f"no statement begins with {begin!r}{meant}"
    if re.search(r"(?i)\bEMIT\s*$", before):
        return f"{words}: EMIT reads FINAL, CHANGES, EARLY '10 seconds' or WITH DELAY '10 seconds'"
    if token == "(" and re.search(r"[\w)\"]\s+\w+\s*$", before):
        return f"{words}: a comma stands between two items of a list"
    last = before.split()[-1] if before.split() else ""
    if "`" in text:
        return f'{words}: names stand in double quotes, "a name", and texts in single ones'
    if re.search(r"(?i)\bTOP\s+\d+", text):
        return f"{words}: write LIMIT 5 at the end, in place of TOP 5"
    if _UNQUOTED.search(text):
        return f"{words}: a path stands in single quotes, FROM 'access.csv'"
    return words + ("" if last.upper() in _KEYWORDS else did_you_mean(last, _KEYWORDS))


def expected(text: str, words: str) -> str:
    """Return the words for a token that is missing, with the form of a length where that may be meant.

    >>> expected("TUMBLE(s, ts, 1 minute)", "Expecting )")
    "Expecting ): a length reads INTERVAL '1' MINUTE"
    """
    if (window := re.search(r"(?i)\bWINDOW\s+(TUMBLING|HOPPING|SESSION)\b", text)) is not None:
        return f"{words}: windows stand in FROM, {INSTEAD_OF[f'{window[1].upper()}WINDOW'].removeprefix('FROM ')}"
    length = _LENGTH.search(text)
    return f"{words}: a length reads INTERVAL '{length[1]}' {length[2].upper()}" if length else words


def open_quote(text: str) -> tuple[int, str] | None:
    """Return the place of a quote that is not closed, and words; None: there is none.

    >>> open_quote("SELECT 'a")
    (7, "the text that begins here has no end: close it with '")
    """
    at, quote = 0, ""
    for place, sign in enumerate(text):
        if sign in ('"', "'") and quote in ("", sign):
            at, quote = (place, "") if quote else (place, sign)
    return (at, f"the text that begins here has no end: close it with {quote}") if quote else None


def is_text_meant(node: Any) -> bool:
    """Return whether a name that is not known may be meant as a text: in double quotes, or behind a comparison."""
    around = node.parent
    is_compared = isinstance(around, exp.EQ | exp.NEQ | exp.In) and around.this is not node
    return bool(node.args["this"].args.get("quoted")) or is_compared


def missing_file(name: str) -> str | None:
    """Return the words for a path without a file, with the closest name in its folder; None: there is one.

    Patterns and addresses are left to their readers.
    """
    path = Path(name)
    if path.exists() or "://" in name or re.search(r"[*?\[]", name):
        return None
    there = sorted(file.name for file in path.parent.iterdir()) if path.parent.is_dir() else []
    return f"no file {name!r}{did_you_mean(path.name, there)}"
