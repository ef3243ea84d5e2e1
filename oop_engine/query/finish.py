"""Finish: the last step of a query, once all results have come: hidden columns, an order, a limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.errors import UsageError

__all__ = ["ALL", "Finish", "check_plain"]


@dataclass(frozen=True)
class Finish:
    """``hidden`` columns are there for the engine; ``order`` has columns, downwards and nulls first; ``limit`` rows."""

    hidden: frozenset[str] = frozenset()
    order: tuple[tuple[str, bool, bool], ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def needs_all(self) -> bool:
        """Whether there is a result only when all have come."""
        return bool(self.order) or self.limit is not None or self.offset > 0

    def rows(self, table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the places of the rows that are wanted, in their order, int64 (n,).

        >>> Finish(order=(("a", True, False),), limit=2).rows(pa.table({"a": [1, None, 3, 2]})).tolist()
        [2, 3]
        """
        at: np.ndarray[tuple[int], np.dtype[np.int64]] = np.arange(table.num_rows)
        if self.order:
            keys, directions = {}, []
            for i, (name, down, nulls_first) in enumerate(self.order):
                keys[f"null{i}"] = pc.is_null(table.column(name))
                directions.append((f"null{i}", "descending" if nulls_first else "ascending"))
                keys[f"key{i}"] = table.column(name)
                directions.append((f"key{i}", "descending" if down else "ascending"))
            at = at[pc.sort_indices(pa.table(keys), sort_keys=directions).to_numpy().astype(np.int64)]
        return at[self.offset :][: self.limit]

    def shown(self, names: list[str]) -> list[str]:
        """Return the columns that are not hidden."""
        return [name for name in names if name not in self.hidden]


ALL = Finish()
"""All columns and rows, as they come."""


def check_plain(place: str, finishes: Mapping[str, Finish]) -> None:
    """Raise ``UsageError`` if a result has an ORDER BY or a LIMIT, which a graph does not have.

    ``place`` is that of the message, ``finishes`` are by the names of results.
    """
    for name, finish in finishes.items():
        if finish.needs_all:
            msg = (
                f"{place}: ORDER BY and LIMIT of {name!r} need all results, and a graph emits them one by one: leave "
                "them out, or run the query by itself, query.run() or `oop-engine sql`"
            )
            raise UsageError(msg)
