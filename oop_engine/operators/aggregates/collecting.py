"""Collecting: the values themselves, as many as are asked for at most.

Which of a window's tuples stay follows from an order of theirs: by time, or by a hash (the samples of ``values.py``).
It does not depend on arrival, so partial collections merge like any other state.

Extremes of texts, bytes and dictionaries, which have no order codes (``order_codes.py``), are lists of the one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import order_codes
from oop_engine.operators.aggregates.base import Arrays, OfColumn, Part
from oop_engine.operators.aggregates.ragged import Ragged
from oop_engine.operators.aggregates.sort_keys import ORDERED, has_order, plain, ranks_of, taken, values_of
from oop_engine.operators.values.columns import begins_of

__all__ = ["Collect", "checked_most", "chosen", "listed", "listed_if", "one_of", "tallied"]

Integers = NDArray[np.int64]
_MOST = 32_767  # lists of a page of results have 32-bit offsets


@checked_arguments
@dataclass(frozen=True)
class Collect(OfColumn):
    """The values of a window, a struct of the list ``values`` and of ``beyond``; null for no values.

    ``values`` has the first ``most`` ones by the windowing attribute, those of one time by value, so it depends on no
    order of arrival.  ``beyond`` is how many more there were.  ``most`` is at most 32,767.  Nulls are skipped.

    >>> from oop_engine import Linear, Page, Schema
    >>> from oop_engine.operators import Tumbling, WindowAggregate
    >>> schema = Schema({"ts": pa.int64(), "v": pa.string()}, "ts", "s")
    >>> some = WindowAggregate(Tumbling(10), {"v": Collect("v", most=2)}).opened(schema)
    >>> list(some.on_page(0, Page.of(schema, {"ts": [7, 3, 9], "v": ["b", "c", "a"]})))
    []
    >>> (_, page), _ = some.on_punctuation(0, Linear(10))
    >>> page.to_pylist()[0]["v"]
    {'values': ['c', 'b'], 'beyond': 1}
    """

    most: int

    wanted = ORDERED

    def __post_init__(self) -> None:
        checked_most("Collect", self.most)

    def _takes(self, kind: pa.DataType) -> bool:
        return has_order(kind)

    def _type(self, kind: pa.DataType) -> pa.DataType:
        return pa.struct([("values", pa.list_(plain(kind))), ("beyond", pa.int64())])

    def parts(self, schema: Schema) -> tuple[Part, ...]:
        kinds = (plain(schema.type_of(self.column)),)
        return Part("collected", self.column, types=kinds, parameter=self.most), Part("count", self.column)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        kept, number = cast(Ragged, states[0][0]).compact(), np.ascontiguousarray(states[1][0])
        each = kind.field("values").type
        flat = chosen(kept, np.arange(kept.values), np.zeros(kept.values, np.bool_), each.value_type)
        offsets = pa.array(np.append(kept.begins, kept.values).astype(np.int32))
        lists = pa.ListArray.from_arrays(offsets, flat, type=each)
        beyond = pa.array(number - kept.lengths)
        return pa.StructArray.from_arrays([lists, beyond], fields=list(kind), mask=pa.array(number == 0))


def checked_most(name: str, most: object) -> None:
    """Raise ``GraphError`` unless ``most`` is a number of values."""
    if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= _MOST:
        msg = f"{name}: most must be a number of values, from 1 to {_MOST:,}; got {most!r}"
        raise GraphError(msg)


def tallied(sample: Ragged) -> Ragged:
    """Return the different values of lists, and how many there are of each.  O(values log values)."""
    rows, keys = np.repeat(np.arange(sample.size), sample.lengths), ranks_of(sample.flat[0])
    order = np.lexsort((keys, rows))
    rows, keys = rows[order], keys[order]
    starts = begins_of(rows, keys)
    lengths = np.bincount(rows[starts], minlength=sample.size)
    counts = np.diff(starts, append=rows.size)
    return Ragged.of(lengths, (taken(sample.flat[0], order[starts]), counts), sample.kind)


def listed_if(part: Part, *kinds: pa.DataType) -> Part:
    """Return ``part``, which chooses by columns of these types, as one of lists if some have no order codes."""
    return part if all(map(order_codes.has_codes, kinds)) else part._replace(kind=f"{part.kind}_listed")


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
