"""Columns of results that repeat columns of the input."""

from __future__ import annotations

from collections.abc import Sequence

from oop_engine.core.page import Page
from oop_engine.testing.case import Case, Row, typed
from oop_engine.testing.compared import must

__all__ = ["as_put_in", "come_from"]


def as_put_in(case: Case, given: list[list[Row]]) -> list[list[Row]]:
    """Return rows as pages give them back: with values of their columns' types."""
    columns = [
        {name: typed([row[name] for row in rows], schema.type_of(name)) for name in schema.names}
        for schema, rows in zip(case.inputs, given, strict=True)
    ]
    return [Page.of(*pair).to_pylist() for pair in zip(case.inputs, columns, strict=True)]


def come_from(name: str, rows: list[Row], sources: Sequence[str | None], given: list[list[Row]]) -> None:
    """Raise ``AssertionError`` unless all values of a column are there in the columns that it repeats."""
    known = {str(r[c]) for inputs, c in zip(given, sources, strict=True) if c for r in inputs}
    unknown = [row[name] for row in rows if str(row[name]) not in known] if known else []
    must(
        not unknown,
        f"column {name!r} is declared to repeat {sources}, and has {unknown}, which are not there",
    )
