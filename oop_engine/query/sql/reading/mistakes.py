"""Mistakes in a text of SQL: the place, the line with a caret, the reason and the way out."""

from __future__ import annotations

from typing import Any

from oop_engine.core.errors import UsageError

__all__ = ["mistake", "mistake_at", "unsupported"]


def mistake_at(text: str, line: int, column: int, words: str) -> UsageError:
    """Return the error for a place of a text; ``line`` and ``column`` count from 1.

    >>> print(mistake_at("SELECT hots", 1, 8, "no column 'hots'; did you mean host?"))
    sql: line 1, column 8: no column 'hots'; did you mean host?
      SELECT hots
             ^
    """
    lines = text.splitlines() or [""]
    line = min(max(line, 1), len(lines))
    column = min(max(column, 1), len(lines[line - 1]) + 1)
    start = max(column - 60, 0)
    shown = lines[line - 1][start : start + 100]
    return UsageError(
        f"sql: line {line}, column {column}: {words}\n  {shown}\n  {' ' * (column - 1 - start)}^"
    )


def mistake(text: str, node: Any, words: str) -> UsageError:
    """Return the error for a part of a parsed text: the place of the first word that is known, of it or around it."""
    around = node
    while around is not None:
        start = next((int(part.meta["start"]) for part in around.walk() if "start" in part.meta), None)
        if start is not None:
            before = text[:start]
            return mistake_at(text, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1, words)
        around = around.parent
    return mistake_at(text, 1, 1, words)


def unsupported(text: str, node: Any, form: str, instead: str) -> UsageError:
    """Return the error for a form that is read, and not known to the planner."""
    return mistake(text, node, f"{form} is not supported: {instead}")
