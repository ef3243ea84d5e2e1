"""The text table: codes of texts and of bytes, read in kernels where Arrow has them.

Keys that end are removed with the table: a caller that forgets groups makes a new one of those that remain
(``GroupIndex.keep``).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import is_text, occurring
from oop_engine.operators.keys.flat import is_same, offsets_and_bytes
from oop_engine.system.knobs import knob

__all__ = ["TextTable"]

Integers = NDArray[np.int64]
Marks = NDArray[np.bool_]

_LEAST = knob(__name__, "_LEAST", 16, power=True)  # keys, and words of the heap
_PLACES = 4  # for each key: few texts look for a second place
_CHUNK = knob(__name__, "_CHUNK", 256)  # keys for which room is made, at least; else as many as there are
_SHARED = knob(__name__, "_SHARED", 4)  # texts for each code of a column whose dictionary has all of them
_SLACK = 16  # bytes that ``kernels.write`` needs behind the last text
_ALL = np.empty(0, np.bool_)
_ALL.flags.writeable = False
_INDEXES = frozenset(kind.id for kind in (pa.int32(), pa.int64()))


class TextTable:
    """Codes of distinct texts, or strings of bytes, and of null, 0, 1, 2... in order of first sight.

    ``nbytes``: bytes of the texts and their places, with the room that is left, and of the dictionaries that were
    read and written last.

    >>> table = TextTable(pa.string())
    >>> table.encode(pa.array(["b", "a", "b"]), add=True), table.encode(pa.array(["a", "z"]), add=False)
    (array([0, 1, 0]), array([ 1, -1]))
    >>> table.values(np.array([1, 1, 0]), pa.string()).to_pylist()
    ['a', 'a', 'b']
    """

    __slots__ = ("_all", "_heap", "_places", "_seen", "_texts", "_words", "nbytes", "sizes")

    def __init__(self, kind: pa.DataType) -> None:
        self._texts = _is_texts(kind)
        self._words = np.zeros((_LEAST, 2), np.uint64)
        self._heap = np.zeros(_LEAST, np.uint64)
        self._places = np.full(_PLACES * _LEAST, -1, np.int32)
        self.sizes = np.array([0, -1, 0])  # how many codes there are, the code of null, words of the heap
        self._all: pa.Array | None = (
            None  # all texts by code, that of null empty, as a dictionary of key columns
        )
        self._seen: tuple[pa.Array, Integers] | None = None  # the last dictionary, and the codes of its texts
        self._measure()

    def __len__(self) -> int:
        return int(self.sizes[0])

    def encode(self, column: pa.Array, *, add: bool) -> Integers:
        """Return the code of every row, int64 (rows,); O(bytes), and of the last dictionary again O(rows).

        A text that is not known gets the next free code, or, unless ``add``, -1.
        """
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        values = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if _is_texts(values) is not self._texts:
            return self._others(column, add=add)
        if not len(column):
            return np.empty(0, np.int64)
        valid = _valid(column) if column.null_count else _ALL
        if pa.types.is_dictionary(column.type):
            return self._indexed(column, valid, add=add)
        codes = np.empty(len(column), np.int64)
        flat = offsets_and_bytes(column)
        if add:
            self._encode(_kernels().encode, (*flat, valid), flat, codes)
        else:
            _kernels().find(*flat, valid, self._table, self.sizes, codes)
        return codes

    def values(self, codes: Integers, kind: pa.DataType) -> pa.Array:
        """Return the text of each code as a column of type ``kind``; O(bytes)."""
        if pa.types.is_dictionary(kind):
            return self._dictionary(codes, kind)
        texts, null = self._plain(codes, kind), int(self.sizes[1])
        if null < 0 or not (nulls := int(np.count_nonzero(codes == null))):
            return texts
        valid = pa.py_buffer(np.packbits(codes != null, bitorder="little"))
        return pa.Array.from_buffers(kind, codes.size, [valid, *texts.buffers()[1:]], nulls)

    def _plain(self, codes: Integers, kind: pa.DataType) -> pa.Array:
        """Return the text of each code; that of null is empty."""
        null = int(self.sizes[1])
        offsets = np.empty(codes.size + 1, np.int64)
        _kernels().lengths(self._words, self._heap, null, codes, offsets)
        data = np.empty(int(offsets[-1]) + _SLACK, np.uint8)
        _kernels().write(self._words, self._heap, codes, offsets, data)
        large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        if not large and offsets[-1] >= 1 << 31:
            msg = f"keys of {offsets[-1]} bytes do not fit into one column of {kind}: use large_{kind}"
            raise pa.ArrowInvalid(msg)
        ends = offsets if large else offsets.astype(np.int32)
        return pa.Array.from_buffers(
            kind, codes.size, [None, pa.py_buffer(ends), pa.py_buffer(data[: offsets[-1]])], 0
        )

    @property
    def _table(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]]:
        return self._words, self._heap, self._places

    def _others(self, column: pa.Array, *, add: bool) -> Integers:
        """Return the codes of a column of another type, none of whose values but null is known."""
        if add and column.null_count < len(column):
            msg = f"keys must be {'texts' if self._texts else 'bytes'}; got {column.type}"
            raise TypeError(msg)
        nulls = pa.nulls(len(column), pa.string() if self._texts else pa.binary())
        codes = self.encode(nulls, add=add)
        codes[column.is_valid().to_numpy(zero_copy_only=False)] = -1
        return codes

    def _indexed(self, column: pa.DictionaryArray, valid: Marks, *, add: bool) -> Integers:
        """Return the codes of a dictionary column: each of its texts is looked up once."""
        dictionary, indexes = column.dictionary, column.indices
        if dictionary.null_count or indexes.type.id not in _INDEXES or not len(dictionary):
            return self.encode(column.dictionary_decode(), add=add)
        if self._seen is None or not is_same(self._seen[0], dictionary):
            self._seen = dictionary, np.full(len(dictionary), -1)
            self._measure()
        known, flat = self._seen[1], offsets_and_bytes(dictionary)
        at = np.frombuffer(indexes.buffers()[1], f"i{indexes.type.bit_width // 8}")
        at, codes = at[indexes.offset : indexes.offset + len(indexes)], np.empty(len(column), np.int64)
        if add:
            self._encode(_kernels().encode_indexes, (at, valid, *flat, known), flat, codes)
        else:
            _kernels().find_indexes(at, valid, *flat, known, self._table, self.sizes, codes)
        return codes

    def _encode(self, kernel: Any, given: tuple[Any, ...], flat: tuple[Any, ...], codes: Integers) -> None:
        """Write codes by a kernel, and make room where it stops."""
        done = 0
        while (done := kernel(*given, self._table, self.sizes, codes, done)) < codes.size:
            self._grow(flat[0], done if given[0] is flat[0] else int(given[0][done]))

    def _grow(self, offsets: NDArray[Any], row: int) -> None:
        """Make room for as many keys again as there are, and for the bytes of the text in a row."""
        known, used = len(self), int(self.sizes[2])
        if known == len(self._words):
            room = max(2 * known, _CHUNK)
            self._words = _longer(self._words, room)
            self._places = np.full(1 << (_PLACES * room - 1).bit_length(), -1, np.int32)
            _kernels().fill(self._words, self._places, self.sizes)
        size = (
            int(offsets[row + 1] - offsets[row]) if row + 1 < offsets.size else 0
        )  # an index of null is any
        if (wanted := used + 1 + (size + 7) // 8) > self._heap.size:
            self._heap = _longer(self._heap, 2 * wanted)
        self._measure()

    def _dictionary(self, codes: Integers, kind: pa.DataType) -> pa.Array:
        """Return a column with an index for each code.

        Its dictionary has all texts, so that columns share it; of few codes it has those that occur.
        """
        null, index = int(self.sizes[1]), kind.index_type.to_pandas_dtype()
        every = self._all is not None and self._all.type == kind.value_type and len(self._all) == len(self)
        if every or len(self) <= _SHARED * codes.size:
            if not every:
                self._all = self._plain(np.arange(len(self)), kind.value_type)
                self._measure()
            texts, places = self._all, codes.astype(index)
        else:
            used = occurring(codes, len(self))
            place = np.zeros(len(self), index)
            place[used] = np.arange(used.size)
            texts, places = self._plain(used, kind.value_type), place[codes]
        indexes = pa.array(places, mask=codes == null if null >= 0 else None)
        return pa.DictionaryArray.from_arrays(indexes, texts, ordered=kind.ordered)

    def _measure(self) -> None:
        total_bytes = self._words.nbytes + self._heap.nbytes + self._places.nbytes + self.sizes.nbytes
        if self._all is not None:
            total_bytes += self._all.get_total_buffer_size()
        if self._seen is not None:
            total_bytes += self._seen[0].get_total_buffer_size() + self._seen[1].nbytes
        self.nbytes = total_bytes  # asked for after each message


@cache
def _kernels() -> Any:
    """Return the kernels, whose module loads Numba: not before a key is looked up."""
    from oop_engine.operators.kernels.texts import table

    return table


def _longer(array: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """Return an array with more rows, zeros at its end."""
    longer = np.zeros((size, *array.shape[1:]), np.uint64)
    longer[: len(array)] = array
    return longer


def _valid(column: pa.Array) -> Marks:
    """Return in which rows there is a value; read-only, for one signature of each kernel will do."""
    valid: Marks = column.is_valid().to_numpy(zero_copy_only=False)
    valid.flags.writeable = False
    return valid


def _is_texts(kind: pa.DataType) -> bool | None:
    """Return whether values are texts; None: they are neither texts nor bytes."""
    types = pa.types
    if is_text(kind) or types.is_string_view(kind):
        return True
    return (
        False if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind) else None
    )
