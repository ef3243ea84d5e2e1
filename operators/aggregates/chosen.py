"""Chosen values: those that are one of the column's own, where they are no numbers.

Numbers are chosen by order codes, in compiled loops (``order_codes.py``).  Texts, bytes and values of dictionaries have
none: there a state is a list of the one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.operators.aggregates.base import Part
from oop_engine.operators.aggregates.order_codes import has_order
from oop_engine.operators.aggregates.ragged import Ragged
from oop_engine.operators.aggregates.sort_keys import values_of

__all__ = ["chosen", "listed", "listed_if", "one_of"]

Integers = NDArray[np.int64]


def listed_if(part: Part, *kinds: pa.DataType) -> Part:
    """Return ``part``, which chooses by columns of these types, as one of lists if some have no order codes."""
    return part if all(map(has_order, kinds)) else part._replace(kind=f"{part.kind}_listed")


def listed(state: Sequence[Any]) -> Ragged | None:
    """Return the lists that a state is, if it is one of ``listed_if``."""
    return state[0] if isinstance(state[0], Ragged) else None


def one_of(values: Ragged, kind: pa.DataType) -> pa.Array:
    """Return the one value of each list; null where there is none."""
    return chosen(values, values.begins, values.lengths == 0, kind)


def chosen(values: Ragged, at: Integers, null: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Return the values at some places of the first column, of the type ``kind``; null where ``null`` is true."""
    flat: Any = values.flat[0]
    if null.all():
        return pa.nulls(null.size, kind)
    if isinstance(flat, np.ndarray):
        return values_of(flat[np.where(null, 0, at)], kind, null)
    return flat.take(pa.array(at, mask=null))
