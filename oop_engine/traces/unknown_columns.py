"""Unknown columns: those of a source that its schema does not have; they are left out of pages, and counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable

__all__ = ["OTHERS", "UnknownColumns"]

OTHERS = "other columns"
"""The name under which all columns behind the first ``_MOST`` are counted."""
_MOST, _LONGEST = 50, 64


class UnknownColumns:
    """Counts, by name, how many rows had a column that is not one of ``known``.

    ``counts``: at most 50 names, of at most 64 bytes, and ``OTHERS``: whoever sends ever new names fills no memory.
    """

    def __init__(self, known: Collection[str]) -> None:
        self.known = frozenset[object]()
        self.counts: dict[str, int] = {}
        self.allow(known)

    def allow(self, names: Collection[str]) -> None:
        """Count these no more."""
        self.known |= {*names, *map(_shown, names)}

    def add(self, name: object, rows: int) -> None:
        """Count a column of some rows."""
        if name in self.known:
            return
        text = _shown(name)
        if text not in self.counts and len(self.counts) >= _MOST:
            text = OTHERS
        self.counts[text] = self.counts.get(text, 0) + rows

    def add_rows(self, rows: Iterable[Iterable[object]]) -> None:
        """Count the columns of rows, each of which gives the names of its own."""
        rows = list(rows)
        if set().union(*rows) <= self.known:
            return
        for row in rows:
            for name in row:
                self.add(name, 1)


def _shown(name: object) -> str:
    """Return a name as text of Unicode, cut if it is long."""
    text = name if isinstance(name, bytes) else str(name).encode(errors="replace")
    return text[:_LONGEST].decode(errors="replace")
