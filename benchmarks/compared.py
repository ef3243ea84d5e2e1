"""Compared: whether results are those of the reference, all of them and no other."""

from __future__ import annotations

import numpy as np

from benchmarks.data import Columns

__all__ = ["equal"]


def equal(found: Columns, wanted: Columns, keys: tuple[str, ...]) -> bool:
    """Tell whether both have the same rows, in any order.

    Integers must be equal, floats to 1e-9 of 1 or of their size.  ``keys``: the columns that tell rows apart.
    """
    if {name: column.size for name, column in found.items()} != {n: c.size for n, c in wanted.items()}:
        return False
    mine, theirs = _sorted(found, keys), _sorted(wanted, keys)
    return all(_same(mine[name], theirs[name]) for name in wanted)


def _sorted(columns: Columns, keys: tuple[str, ...]) -> Columns:
    order = np.lexsort([columns[name] for name in reversed(keys)])
    return {name: column[order] for name, column in columns.items()}


def _same(found: np.ndarray, wanted: np.ndarray) -> bool:
    if np.issubdtype(wanted.dtype, np.floating):
        return bool(np.allclose(found, wanted, rtol=1e-9, atol=1e-9))
    return bool(np.array_equal(found, wanted))
