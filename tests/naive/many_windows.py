"""Windows of many definitions, from the definition: each for itself, its results under its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.naive.windows import Functions, Row, sliding

__all__ = ["many"]


def many(
    rows: list[Row], time: str, by: tuple[str, ...], functions: Functions,
    definitions: Mapping[str, tuple[int, int, int]],
) -> list[Row]:  # fmt: skip
    """Return the result of every (group, window) with a tuple, of each definition (range, slide, origin)."""
    return [
        _named(name, by, row)
        for name, (range_, slide, origin) in definitions.items()
        for row in sliding(rows, time, by, functions, range_, slide, origin)
    ]


def _named(name: str, by: tuple[str, ...], row: dict[str, Any]) -> Row:
    return {**{key: row[key] for key in by}, "window": name, **row}
