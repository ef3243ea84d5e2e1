"""HTML of values, for notebooks: small tables in which every text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["table_html"]

_CELL = 200  # characters


def table_html(title: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of ``rows`` below a title; long values are cut.

    >>> table_html("one", ["a"], [{"a": "<"}])
    '<table><caption>one</caption><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(row[name])}</td>' for name in names)}</tr>" for row in rows)
    caption = f"<caption>{escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return escape(text if len(text) <= _CELL else f"{text[:_CELL]}…")
