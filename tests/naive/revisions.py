"""Revision streams, by definition: the net content is the sum of the changes of each distinct row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]


def net(rows: Iterable[Row], change: str = "change") -> list[Row]:
    """Return the rows that are left, each as often as it is there; none may be there less than never."""
    counts: Counter[tuple[tuple[str, Any], ...]] = Counter()
    for row in rows:
        counts[tuple((name, value) for name, value in sorted(row.items()) if name != change)] += row[change]
    assert all(count >= 0 for count in counts.values()), counts
    return [dict(row) for row, count in counts.items() for _ in range(count)]
