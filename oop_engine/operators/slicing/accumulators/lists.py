"""Value lists: how states are kept that are lists of different values, in order, with a number each.

The number is how many tuples have the value, or, in a sketch, whatever of two of one value can be made one.  A page is
counted by one sort of (row, value), and lists are merged; both in kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.aggregates.ragged import Flat, Ragged
from oop_engine.operators.aggregates.sort_keys import decoded, has_keys, keys_of, ranked, ranks_of
from oop_engine.operators.kernels.hashing import lifted, mix_bytes, mix_integers, registers
from oop_engine.operators.kernels.lists import ascending, counted, merge, tally
from oop_engine.operators.slicing.accumulator import Accumulator, register_accumulator
from oop_engine.operators.slicing.compiled import fixed, numbers, valid
from oop_engine.operators.slicing.window_states import narrow
from oop_engine.operators.values.columns import Integers
from oop_engine.system.knobs import knob

__all__ = ["BinCounts", "Lists", "NameCounts", "Registers", "ValueCounts", "column_of", "hashes", "state_of"]

_MOST = 1 << 62  # pairs of a row and a value
_CELLS = knob(__name__, "_CELLS", 4)  # of those there may be, for each tuple: with more it is sooner to sort


class Lists(Accumulator):
    """Keeps lists; ``flat`` are their columns, empty, and ``kind`` is the type of the values."""

    ragged: ClassVar[bool] = True
    identity = ()
    flat: tuple[Flat, ...] = (np.empty(0, np.int64), np.empty(0, np.int64))

    @property
    def kind(self) -> pa.DataType:
        """The type of the values that are listed."""
        return self.part.types[0]

    def empty(self, rows: int) -> Arrays:
        return state_of(Ragged.of(np.zeros(rows, np.int64), self.flat, self.kind))

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        rows = len(a[0])
        by_turns = np.arange(2 * rows).reshape(2, rows).T.ravel()
        return self.reduce((np.concatenate([a[0], b[0]])[by_turns],), np.arange(0, 2 * rows, 2))

    def saved(self, state: Arrays) -> list[Any]:
        column = column_of(state).compact()
        batches = [
            f if isinstance(f, np.ndarray) else pa.RecordBatch.from_arrays([f], ["values"])
            for f in column.flat
        ]
        return [narrow(column.lengths), *batches]

    def loaded(self, saved: Saved, rows: int) -> Arrays:
        lengths = saved.integers(0, (rows,), least=0)
        flat = tuple(_of_saved(saved, i + 1, empty, int(lengths.sum())) for i, empty in enumerate(self.flat))
        return state_of(self._checked(Ragged.of(lengths, flat, self.kind)))

    def _checked(self, column: Ragged) -> Ragged:
        """Raise ``SnapshotError`` if lists are not in order."""
        return column

    def arrow_types(self) -> list[pa.DataType]:
        return [pa.list_(_type(flat)) for flat in self.flat]

    def to_arrow(self, state: Arrays) -> list[pa.Array]:
        column = column_of(state).compact()
        offsets = pa.array(np.append(column.begins, column.values).astype(np.int32))
        return [pa.ListArray.from_arrays(offsets, pa.array(flat, from_pandas=False)) for flat in column.flat]

    def of_arrow(self, columns: Sequence[pa.Array]) -> Arrays:
        lengths = columns[0].value_lengths()
        if not all(column.value_lengths().equals(lengths) for column in columns):
            msg = f"the lists of one partial aggregate of {self.part.column!r} must be as long as each other"
            raise ContractError(msg)
        pairs = zip((column.flatten() for column in columns), self.flat, strict=True)
        flat = tuple(
            c if isinstance(empty, pa.Array) else c.to_numpy().astype(empty.dtype) for c, empty in pairs
        )
        return state_of(Ragged.of(lengths.to_numpy().astype(np.int64), flat, self.kind))


@register_accumulator("values")
class ValueCounts(Lists):
    """Keeps the values of a column by their keys (``aggregates/sort_keys.py``), and how many there are of each.

    ``largest``: of the numbers of one value the largest stays, in place of their sum.
    """

    largest: ClassVar[bool] = False

    def prepare(self, page: Page, times: Integers) -> Arrays:
        column = decoded(page.column(self.part.column or ""))
        return self.keys(column), valid(column)

    def keys(self, column: pa.Array) -> NDArray[Any]:
        """Return the key of each value of a column, an integer; those of nulls are of no use."""
        return keys_of(column)

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        keys, known = inputs
        if not known.all():
            rows, keys = rows[known], keys[known]
        column = column_of(state)
        fresh = self._tallied(rows, keys, column.size)
        if column.values:
            fresh = column_of(self.combine(state, state_of(fresh)))
        column.become(fresh)

    def _tallied(self, rows: Integers, keys: NDArray[Any], size: int) -> Ragged:
        """Return the lists of tuples by their rows."""
        if not keys.size:
            return column_of(self.empty(size))
        least = int(keys.min())
        span, different = int(keys.max()) - least + 1, None
        if span * size >= _MOST:
            different, keys = np.unique(keys, return_inverse=True)
            least, span = 0, different.size
        lengths, (values, numbers) = np.zeros(size, np.int64), np.empty((2, keys.size + 1), np.int64)
        if size * span <= _CELLS * keys.size:
            many = counted(rows, fixed(keys), span, least, lengths, values, numbers)
        else:
            pairs = rows * span + (keys - least)
            many = tally(ascending(pairs, int(pairs.max())), span, least, lengths, values, numbers)
        values, numbers = _trimmed(values, many), _trimmed(numbers, many)
        return Ragged.of(lengths, (values if different is None else different[values], numbers), self.kind)

    def reduce(self, state: Arrays, starts: Integers) -> Arrays:
        column = column_of(state)
        if starts.size == column.size and (starts[1:] > starts[:-1]).all():
            return state
        return state_of(self._merged(column, column.flat[0], column.flat[1], starts))

    def _merged(self, column: Ragged, values: Integers, numbers: Integers, starts: Integers) -> Ragged:
        merged = np.empty(starts.size, np.int64)
        values, numbers = map(fixed, (values, numbers))
        values, numbers = merge(column.begins, column.lengths, values, numbers, starts, self.largest, merged)
        many = int(merged.sum())
        return Ragged.of(merged, (_trimmed(values, many), _trimmed(numbers, many)), self.kind)

    def _checked(self, column: Ragged) -> Ragged:
        values, numbers = column.flat
        grown = values[1:] > values[:-1]
        between = column.begins[(column.begins > 0) & (column.begins < values.size)]
        grown[between - 1] = True
        if not grown.all() or (numbers < 1).any():
            msg = "values must be in order, each with a number above 0"
            raise SnapshotError(msg)
        return column


@register_accumulator("names")
class NameCounts(ValueCounts):
    """Does so for values that are no numbers, and are put in order by Arrow, such as texts."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.flat = pa.nulls(0, part.types[0]), np.empty(0, np.int64)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        column = decoded(page.column(self.part.column or ""))
        known = column.drop_null()
        flat = known, np.ones(len(known), np.int64)
        return state_of(Ragged.of(valid(column).astype(np.int64), flat, self.kind))

    def add(self, state: Arrays, rows: Integers, inputs: Arrays) -> None:
        Accumulator.add(self, state, rows, inputs)

    def reduce(self, state: Arrays, starts: Integers) -> Arrays:
        column = column_of(state)
        names, keys = ranked(column.flat[0])
        merged = self._merged(column, keys, column.flat[1], starts)
        flat = names.take(pa.array(merged.flat[0])), merged.flat[1]
        return state_of(Ragged.of(merged.lengths, flat, self.kind))

    def _checked(self, column: Ragged) -> Ragged:
        super()._checked(Ragged.of(column.lengths, (ranks_of(column.flat[0]), column.flat[1]), self.kind))
        return column


@register_accumulator("bins")
class BinCounts(ValueCounts):
    """Keeps how many values there are in each bin of ``Bins``."""

    def keys(self, column: pa.Array) -> NDArray[np.int32]:
        """Return the bin of each value."""
        from oop_engine.operators.aggregates.sketches import Bins  # loaded where windows have some

        return Bins(self.part.parameter).of(numbers(column, pa.int32(), pa.int64(), pa.float64()))


@register_accumulator("registers")
class Registers(Lists):
    """Keeps registers of HyperLogLog, as many as the parameter of the part."""

    flat = (np.empty(0, np.uint8),)

    @property
    def _count(self) -> int:
        return int(self.part.parameter)

    def prepare(self, page: Page, times: Integers) -> Arrays:
        column = decoded(page.column(self.part.column or ""))
        known = column.drop_null()
        found = np.empty((len(known), 3), np.uint8)
        lifted(hashes(known), self._count, found)
        return state_of(Ragged.of(3 * valid(column).astype(np.int64), (found.ravel(),), self.kind))

    def reduce(self, state: Arrays, starts: Integers) -> Arrays:
        column = column_of(state)
        merged, flat = np.empty(starts.size, np.int64), fixed(column.flat[0])
        found = registers(column.begins, column.lengths, flat, starts, self._count, merged)
        return state_of(Ragged.of(merged, (_trimmed(found, int(merged.sum())),), self.kind))

    def _checked(self, column: Ragged) -> Ragged:
        sparse = np.flatnonzero(column.lengths != self._count)
        in_threes = (column.lengths[sparse] % 3 == 0).all() and (column.lengths <= self._count).all()
        triples = column[sparse].compact().flat[0]
        places = triples[: triples.size // 3 * 3].reshape(-1, 3) @ np.array([1, 256, 0])
        if not in_threes or (places >= self._count).any():
            msg = f"registers must be {self._count}, or three bytes for each that is set"
            raise SnapshotError(msg)
        return column


def hashes(column: pa.Array, *more: Integers) -> Integers:
    """Return 64 bits for each value of a column without nulls, and numbers beside it; the same in every process."""
    codes = np.full(len(column), 0x5851F42D4C957F2D)
    for column_beside in more:
        mix_integers(codes, fixed(column_beside))
    if has_keys(column.type):
        mix_integers(codes, fixed(keys_of(column)))
    elif pa.types.is_decimal(column.type):
        words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, column.type.byte_width // 8)
        for word in words[column.offset : column.offset + len(column)].T:
            mix_integers(codes, fixed(word))
    else:
        _, offsets, data = column.cast(pa.large_binary()).buffers()
        ends = np.frombuffer(offsets, np.int64)[: len(column) + 1]
        mix_bytes(codes, ends, np.frombuffer(data or b"", np.uint8))
    mix_integers(codes, np.zeros_like(codes))  # once more, so that each bit depends on all
    return codes


def column_of(state: Arrays) -> Ragged:
    """Return the lists of a state."""
    return cast(Ragged, state[0])


def state_of(column: Ragged) -> Arrays:
    """Return lists as a state."""
    return cast(Arrays, (column,))


def _trimmed(column: NDArray[Any], size: int) -> NDArray[Any]:
    return column if size == column.size else column[:size].copy()


def _type(flat: Flat) -> pa.DataType:
    return flat.type if isinstance(flat, pa.Array) else pa.from_numpy_dtype(flat.dtype)


def _of_saved(saved: Saved, place: int, empty: Flat, size: int) -> Flat:
    if isinstance(empty, np.ndarray):
        return saved.numbers(place, (size,), empty.dtype)
    return saved.batch(place, pa.schema([("values", empty.type)]), size).column(0)
