"""Keys as integers: the code that the index of a window join goes by.

A single column that can be seen as integers (also floats, instants, booleans) is its own
code.  Anything else is hashed, column after column: equal keys have equal codes, and that
different ones have is so rare that it need not be fast, but it has to be right, so
a caller that finds rows by such a code compares the keys (``equal``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import comparable
from oop_engine.operators.kernels.hashing import equal_bytes, equal_values, mix_bytes, mix_integers
from oop_engine.operators.keys.flat import is_same, offsets_and_bytes

__all__ = ["Flat", "KeyCodes", "key_hashes"]

Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]
Rows = NDArray[np.int32]
Flat = list[tuple[NDArray[Any], ...]]
"""Of each key column its values, or offsets and bytes."""


class KeyCodes:
    """Codes of the rows of key columns of some ``types``; none of the values is null.

    Two keys are the same if they are equal as in ``GroupIndex``: NaN equals NaN, -0.0 equals 0.0.

    >>> codes = KeyCodes([pa.int32()])
    >>> codes.of([pa.array([7, 5, 7], pa.int32())], rows=3), codes.exact
    (array([7, 5, 7]), True)
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = [_value_type(kind) for kind in types]
        self.columns = len(types)
        integers = [_integers(comparable(pa.nulls(0, kind))) is not None for kind in self._types]
        self.exact = not types or integers == [True]
        """Whether equal codes are equal keys."""
        self.in_place = all(map(_is_flat, types))
        """Whether keys can be compared where they lie, by ``equal_at``."""
        self._hashed: dict[tuple[int, int], tuple[pa.Array, Ints]] = {}  # the last dictionaries

    @property
    def nbytes(self) -> int:
        """Bytes of the dictionaries that are remembered, and of their codes."""
        return sum(known.get_total_buffer_size() + codes.nbytes for known, codes in self._hashed.values())

    def of(self, columns: Sequence[pa.Array], rows: int, source: int = 0) -> Ints:
        """Return the code of every row, int64 (rows,).

        O(bytes); of a dictionary O(rows), and O(its bytes) if the last columns of the same
        ``source`` had another one.
        """
        if not columns:
            return np.zeros(rows, np.int64)
        if self.exact:
            return self._single(columns[0])
        codes = np.zeros(rows, np.int64)
        for place, column in enumerate(columns):
            is_dictionary = pa.types.is_dictionary(column.type)
            mix_integers(
                codes, self._of_dictionary((source, place), column) if is_dictionary else _hashed(column)
            )
        return codes

    def equal(self, columns: Sequence[pa.Array], others: Sequence[pa.Array]) -> Marks:
        """Return in which rows the keys are equal, bool (rows,)."""
        same = np.ones(len(columns[0]), np.bool_)
        for column, other in zip(columns, others, strict=True):
            equal = pc.equal(_plain(comparable(column)), _plain(comparable(other)))
            same &= equal.to_numpy(zero_copy_only=False)
        return same

    def flat(self, columns: Sequence[pa.Array]) -> Flat:
        """Return the memory of key columns, for ``equal_at``; they must be comparable ``in_place``."""
        return [(_fixed(c),) if pa.types.is_primitive(c.type) else offsets_and_bytes(c) for c in columns]

    def equal_at(self, keys: Flat, rows: Rows, others: Flat, other_rows: Rows, same: Marks) -> None:
        """Clear ``same``, bool (pairs,), of the pairs of ``rows`` and ``other_rows`` of ``others`` whose keys differ.

        Both int32 (pairs,).  O(pairs), and O(bytes) of texts.
        """
        for column, other in zip(keys, others, strict=True):
            (equal_values if len(column) == 1 else equal_bytes)(*column, rows, *other, other_rows, same)

    def _single(self, column: pa.Array) -> Ints:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        integers = _integers(comparable(column))
        assert integers is not None
        return integers

    def _of_dictionary(self, place: tuple[int, int], column: pa.DictionaryArray) -> Ints:
        """Return a hash a row; pages that are slices of one column share their dictionary."""
        known, codes = self._hashed.get(place, (None, None))
        if known is None or codes is None or not is_same(known, column.dictionary):
            codes = _hashed(column.dictionary)
            self._hashed[place] = column.dictionary, codes
        rows: Ints = codes[column.indices.to_numpy()]
        return rows


def key_hashes(columns: Sequence[pa.Array], rows: int) -> Ints:
    """Return a hash of each row that follows from its values alone, int64 (rows,); nulls are taken for some value.

    O(bytes), in kernels.
    """
    codes = np.zeros(rows, np.int64)
    for column in columns:
        mix_integers(codes, _hashed(column))
    return codes


def _is_flat(kind: pa.DataType) -> bool:
    """Return whether values are equal where their bytes are, at a fixed width of at most 64 bits or between offsets."""
    types = pa.types
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    whole = types.is_integer(kind) or (types.is_temporal(kind) and not types.is_interval(kind))
    return whole or any(is_text(kind) for is_text in texts)


def _fixed(column: pa.Array) -> NDArray[Any]:
    """Return the values of a column of a fixed width as integers, without copying.

    Read-only, as those of most buffers are: a kernel is compiled, and loaded, for each of the two kinds.
    """
    width = column.type.bit_width // 8
    values: NDArray[Any] = np.frombuffer(column.buffers()[1], f"i{width}", len(column), column.offset * width)
    values.setflags(write=False)
    return values


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _integers(column: pa.Array) -> Ints | None:
    """Return values as int64 if each kind of them fits there, without copying if they are."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    if column.null_count:  # of a dictionary: no row has it
        column = column.fill_null(False if pa.types.is_boolean(kind) else 0)
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.int64()))
    integers: NDArray[Any] = column.to_numpy()
    wide: Ints = integers.view(np.int64) if kind.bit_width == 64 else integers.astype(np.int64)
    return wide  # a cast of Arrow takes longer in a small page


def _plain(column: pa.Array) -> pa.Array:
    """Return values that Arrow can compare: intervals have no order, so no equality either."""
    return column.view(pa.binary(16)) if pa.types.is_interval(column.type) else column


def _hashed(column: pa.Array) -> Ints:
    """Return a hash of each value, int64 (rows,)."""
    codes, column = np.zeros(len(column), np.int64), comparable(column)
    if len(column) and not pa.types.is_null(column.type):
        if (integers := _integers(column)) is not None:
            mix_integers(codes, integers)
        else:
            mix_bytes(codes, *offsets_and_bytes(column))
    return codes
