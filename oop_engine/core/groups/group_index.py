"""Groups: key columns become small integers, once.

Everything that keeps something per group keeps it in arrays, and a group's place in them
is its *slot*.  Slots are dense and given in order of first sight; the keys may be columns
of any type that Arrow can ``take`` rows of.  Integers, and types that can be viewed as such (floats,
instants, booleans), are looked up in NumPy, all rows of a page at once.  Others take a hash
lookup a tuple inside Arrow; Python sees only the keys that differ within a page, and of
texts, as long as there are not many more than rows, only new ones.  Operators look up integers and
texts in kernels (``operators/keys/tables.py``), and Python sees none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.groups.few_texts import FewTexts
from oop_engine.core.groups.in_python import counted
from oop_engine.core.groups.integer_table import IntegerTable
from oop_engine.core.groups.zeros import unsigned_zeros
from oop_engine.core.saved import Saved
from oop_engine.system.knobs import knob

if TYPE_CHECKING:
    from oop_engine.core.page import Page

__all__ = ["IN_NUMPY", "GroupIndex", "KeyTables", "comparable", "is_text", "occurring", "plain_value"]

Integers = NDArray[np.int64]

_UNKNOWN = -1
_CODE_BITS, _CODE = 32, (1 << 32) - 1  # of the last column's code in that of a pair
_nbytes = attrgetter("nbytes")
_WHOLE = frozenset(
    kind.id for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32())
)
_CODE_BYTES = 28  # of a Python integer
_SHARED = 257  # integers below are there once, whoever has them
_PAGE = knob(__name__, "_PAGE", 1 << 16)  # rows that are learnt together, of a snapshot
_FEW = knob(
    __name__, "_FEW", 64
)  # rows; fewer are looked up one by one, which costs less than a call into Arrow
_SMALL = knob(__name__, "_SMALL", 1024)  # keys; those of smaller pages are put together
_FIRST = np.zeros(1 << 16, np.int64)  # the slot of every row where there are no keys
_FIRST.flags.writeable = False


class CodeTable(Protocol):
    """Codes of distinct integers and of null, 0, 1, 2... in order of first sight (``IntegerTable``)."""

    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def find(self, values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Integers: ...
    def encode(self, values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Integers: ...

    def reserve(self, values: NDArray[Any]) -> None:
        """Make room for new keys."""

    @property
    def keys(self) -> Integers:
        """The integers by code; that of null is any."""
        ...

    @property
    def sizes(self) -> Sequence[int] | Integers:
        """How many codes there are, and the code of null, or -1."""
        ...


class Level(Protocol):
    """Codes of the distinct values of one column, null among them."""

    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def encode(self, column: pa.Array, *, add: bool) -> Integers:
        """Return the code of each value; new ones get the next free codes, or -1 unless ``add``."""
        ...


class Readable(Level, Protocol):
    """One that gives values back."""

    def values(self, codes: Integers, kind: pa.DataType) -> pa.Array:
        """Return the value of each code as a column of type ``kind``."""
        ...


class KeyTables(NamedTuple):
    """The makers of tables of integers, and of texts or bytes (None: a Python dictionary finds these)."""

    integers: Callable[[], CodeTable] = IntegerTable
    texts: Callable[[pa.DataType], Readable] | None = None


IN_NUMPY = KeyTables()


class GroupIndex:
    """Slots of the distinct rows of some key columns (``types``; none: one single group).

    Two keys are the same if they are equal as SQL's GROUP BY has it: null equals null, NaN
    equals NaN, -0.0 equals 0.0.  ``tables``: how codes are found, in NumPy or
    in kernels (``operators/keys/tables.py``).

    >>> index = GroupIndex([pa.string()])
    >>> index.encode([pa.array(["b", "a", "b"])])
    array([0, 1, 0])
    >>> index.find([pa.array(["a", "z"])])
    array([ 1, -1])
    """

    __slots__ = (
        "_chunks", "_key_bytes", "_levels", "_pairs", "_parts", "_read", "_tables", "_types", "_whole", "moves", "size",
    )  # fmt: skip

    def __init__(self, types: Sequence[pa.DataType], tables: KeyTables = IN_NUMPY) -> None:
        self._types = list(types)
        self._tables = tables
        self._levels = [_codes_of(kind, tables) for kind in self._types]  # of each column
        self._pairs = [
            tables.integers() for _ in self._types[1:]
        ]  # of the codes so far and the next column's
        self._parts = [level.table if isinstance(level, _IntegerCodes) else level for level in self._levels]
        self._parts += self._pairs
        # Keys are read from the tables, or where one cannot give them back they are kept beside.
        self._read = all(map(_can_be_read, self._levels, self._types))
        self._chunks: list[list[pa.Array]] = []
        only = self._levels[0] if len(self._types) == 1 else None
        # The table of the one key column, if there is one and it has integers.
        self._whole = only.table if isinstance(only, _IntegerCodes) and self._types[0].id in _WHOLE else None
        self.size = 0  # how many there are
        self.moves: int = getattr(self, "moves", -1) + 1  # how often slots were given anew
        self._key_bytes = 0

    def __len__(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        """Bytes of the keys, and of the tables that find them, with the room that is left in them; O(1)."""
        tables: int = sum(map(_nbytes, self._parts))
        return self._key_bytes + tables

    def encode(self, columns: Sequence[pa.Array], rows: int | None = None) -> NDArray[np.int64]:
        """Return the slot of every row, int64 (rows,); new keys get the next free slots.

        ``rows`` is needed only where there are no key columns.
        O(rows) in NumPy or Arrow; of other than integers, floats, instants and booleans,
        O(distinct keys in ``columns``) in Python.
        """
        if not self._types:
            self.size = max(self.size, min(rows or 0, 1))
            return _FIRST[:rows] if rows and rows <= _FIRST.size else np.zeros(rows or 0, np.int64)
        slots: Integers = (
            self._codes(columns, add=True) if columns[1:] else self._levels[0].encode(columns[0], add=True)
        )
        if self._read:
            self.size = int(self._parts[-1].sizes[0])
        elif (known := self.size) < (size := len(self._parts[-1])):
            first = np.empty(size - known, np.int64)
            new = np.flatnonzero(slots >= known)[::-1]
            first[slots[new] - known] = new  # written backwards, so the first sight stays
            self._remember([unsigned_zeros(column.take(pa.array(first))) for column in columns], size)
        return slots

    def encode_page(self, page: Page, names: Sequence[str]) -> NDArray[np.int64]:
        """Encode the columns of these names of a page."""
        if self._whole is None or (keys := page.numbers(names[0])) is None:
            return self.encode(list(map(page.key, names)), page.rows)
        slots = self._whole.encode(keys)
        self.size = int(self._whole.sizes[0])
        return slots

    def find(self, columns: Sequence[pa.Array], rows: int | None = None) -> NDArray[np.int64]:
        """Return the slot of every row, -1 where the key is not known; adds nothing."""
        if not self._types:
            return np.full(rows or 0, 0 if self.size else _UNKNOWN, np.int64)
        return self._codes(columns, add=False)

    def keys(self, slots: NDArray[np.int64]) -> list[pa.Array]:
        """Return the key columns of some slots."""
        if not self._types:
            return []
        if self._read:
            return (
                self._from_tables(slots) if self._pairs else [self._levels[0].values(slots, self._types[0])]
            )
        if not self._chunks:
            return [pa.nulls(0, t) for t in self._types]
        if len(self._chunks) > 1:
            self._join(0)
        wanted = pa.Array.from_buffers(
            pa.int64(), slots.size, [None, pa.py_buffer(np.ascontiguousarray(slots))]
        )
        columns = []
        for column in self._chunks[0]:
            columns.append(pc.call_function("array_take", [column, wanted]))
        return columns

    def _from_tables(self, slots: Integers) -> list[pa.Array]:
        """Return the key columns of some slots, of which the tables have all."""
        columns = []
        for pairs, level, kind in zip(
            reversed(self._pairs), reversed(self._levels), reversed(self._types), strict=False
        ):
            both = pairs.keys.take(slots)
            columns.append(level.values(both & _CODE, kind))
            slots = both >> _CODE_BITS
        return [self._levels[0].values(slots, self._types[0]), *reversed(columns)]

    def keep(self, slots: NDArray[np.int64]) -> None:
        """Forget every group but ``slots`` (sorted); group ``slots[i]`` gets slot ``i``."""
        columns = self.keys(slots)
        self.__init__(self._types, self._tables)  # type: ignore[misc]
        self.encode(columns, rows=len(slots))

    def save(self) -> dict[str, Any]:
        """Return the groups for a snapshot."""
        everything = self.keys(np.arange(self.size))
        batch = pa.RecordBatch.from_arrays(everything, names=[str(i) for i in range(len(everything))])
        return {"size": self.size, "keys": batch if everything else None}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned; slots are the same as then."""
        self.__init__(self._types, self._tables)  # type: ignore[misc]
        size = saved.integer("size", least=0, most=2**62 if self._types else 1)
        fields = pa.schema([(str(i), kind) for i, kind in enumerate(self._types)])
        columns = saved.batch("keys", fields, size).columns if self._types else []
        if len(columns) == 1 and isinstance(level := self._levels[0], _Codes) and level.learn(columns[0]):
            self._remember(columns, size)
        elif self._whole is not None and not columns[0].null_count:
            self._whole.reserve(columns[0].to_numpy())  # at once, not as if they came one after the other
            for at in range(0, size, _PAGE):
                self.encode([columns[0].slice(at, _PAGE)])
        else:
            self.encode(columns, rows=size)
        if len(self) != size:
            msg = f"'keys' must be {size} different groups; got {len(self)}"
            raise SnapshotError(msg)

    def _remember(self, columns: list[pa.Array], size: int) -> None:
        chunks, self.size = self._chunks, size
        chunks.append(columns)
        self._key_bytes += _held(columns)
        # The objects of a small page take as much as many rows, so small ones are put together as they come.
        while len(chunks) > 1 and len(chunks[-2][0]) <= 2 * len(chunks[-1][0]) < 2 * _SMALL:
            self._join(len(chunks) - 2)

    def _join(self, since: int) -> None:
        """Put the keys of the pages from the ``since``-th on together; O(log keys) a key, amortised."""
        joined = self._chunks[since:]
        self._chunks[since:] = [[pa.concat_arrays(parts) for parts in zip(*joined, strict=True)]]
        self._key_bytes += _held(self._chunks[since]) - sum(map(_held, joined))

    def _codes(self, columns: Sequence[pa.Array], *, add: bool) -> Integers:
        codes: Integers = self._levels[0].encode(columns[0], add=add)
        for pairs, level, column in zip(self._pairs, self._levels[1:], columns[1:], strict=True):
            more = level.encode(column, add=add)
            known = None
            if more.size and min(int(codes.min()), int(more.min())) < 0:
                known = (codes >= 0) & (more >= 0)
            codes <<= _CODE_BITS  # both are new arrays
            codes |= more
            code_of = pairs.encode if add else pairs.find
            if known is None:
                codes = code_of(codes)
            else:
                known_codes = code_of(codes[known])
                codes[:] = _UNKNOWN
                codes[known] = known_codes
        return codes


class _Codes:
    """Codes of the distinct values of one column; Arrow finds known ``texts`` by itself."""

    def __init__(self, *, texts: bool = False) -> None:
        self._code: dict[Any, int] | FewTexts = FewTexts() if texts else {}
        self._texts = texts
        self._known: pa.Array | None = None  # by code, as far as they have been asked for
        self._value_bytes = 0  # of the values in ``_code``, and their codes

    def __len__(self) -> int:
        return len(self._code)

    @property
    def nbytes(self) -> int:
        """Bytes of the dictionary, its keys and codes, and of the texts that Arrow has; O(1)."""
        known = 0 if self._known is None else self._known.get_total_buffer_size()
        codes = self._code.nbytes if isinstance(self._code, FewTexts) else sys.getsizeof(self._code)
        return int(codes + self._value_bytes + known)

    def encode(self, column: pa.Array, *, add: bool) -> Integers:
        column = comparable(column)
        if len(column) <= _FEW:
            return self._look_up(column.to_pylist(), add=add)
        if not self._texts or not is_text(column.type) or len(self._code) > 2 * len(column):
            return self._encode(column, add=add)
        indices = pc.index_in(column, value_set=self._values(column.type))
        codes: Integers = indices.fill_null(_UNKNOWN).to_numpy().astype(np.int64)
        missing = np.flatnonzero(codes < 0)
        if missing.size:
            codes[missing] = self._encode(column.take(pa.array(missing)), add=add)
        return codes

    def learn(self, column: pa.Array) -> bool:
        """Give different texts the codes 0, 1, ..., of which none is known yet; tell whether that could be done."""
        if not self._texts or len(column) <= _SHARED:
            return False
        values = comparable(column).to_pylist()
        codes = dict(zip(values, range(len(values)), strict=True))
        if len(codes) < len(values):
            return False
        self._code, self._value_bytes = codes, _bytes_of(column, values)
        self._value_bytes += _CODE_BYTES * (len(codes) - _SHARED)
        return True

    def _values(self, kind: pa.DataType) -> pa.Array:
        if self._known is None or self._known.type != kind:
            self._known = pa.array([], kind)
        if len(self._known) < len(self._code):
            new = list(islice(self._code, len(self._known), None))
            self._known = pa.concat_arrays([self._known, pa.array(new, kind)])
        return self._known

    def _encode(self, column: pa.Array, *, add: bool) -> Integers:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = self._look_up(encoded.dictionary.to_pylist(), add=add)
        rows: Integers = codes[encoded.indices.to_numpy(zero_copy_only=False)]
        return rows

    def _look_up(self, values: list[Any], *, add: bool) -> Integers:
        if isinstance(self._code, FewTexts):
            if (code := self._code.encode(values, add=add)) is not None:
                return np.array(code, np.int64)
            few, self._code = self._code, {}
            self._add(list(few))
        if add:
            return self._add(values)
        return np.array([self._code.get(value, _UNKNOWN) for value in values], np.int64)

    def _add(self, values: list[Any]) -> Integers:
        known = self._code
        assert isinstance(known, dict)
        before = len(known)
        codes = np.array([known.setdefault(value, len(known)) for value in values], np.int64)
        if new := len(known) - before:
            apart = max(len(known) - max(before, _SHARED), 0)
            self._value_bytes += sum(map(sys.getsizeof, islice(reversed(known), new))) + _CODE_BYTES * apart
        return codes


def _bytes_of(column: pa.Array, values: list[str | None]) -> int:
    """Return the bytes of texts as objects; of those in ASCII by their length, which takes a fiftieth of the time."""
    plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    if not plain.null_count and all(
        part is None or part.to_pybytes().isascii() for part in plain.buffers()[2:]
    ):
        return len(values) * sys.getsizeof("") + int(pc.sum(pc.binary_length(plain)).as_py())
    return sum(map(sys.getsizeof, values))


class _IntegerCodes:
    """Codes of the distinct values of a column of integers; null has one as well."""

    def __init__(self, table: CodeTable) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    @property
    def nbytes(self) -> int:
        return self.table.nbytes

    def values(self, codes: Integers, kind: pa.DataType) -> pa.Array:
        null, whole = self.table.sizes[1], self.table.keys.take(codes)
        if kind.bit_width != 64:
            whole = whole.astype(f"u{kind.bit_width // 8}")  # the bits that a signed one has, too
        valid, nulls = None, 0
        if null >= 0 and (nulls := int(np.count_nonzero(codes == null))):
            valid = pa.py_buffer(np.packbits(codes != null, bitorder="little"))
        return pa.Array.from_buffers(kind, whole.size, [valid, pa.py_buffer(whole)], nulls)

    def encode(self, column: pa.Array, *, add: bool) -> Integers:
        if column.type.id in _WHOLE and not column.null_count:  # as mostly
            values = column.to_numpy()
            return self.table.encode(values) if add else self.table.find(values)
        column = comparable(column)
        if not (add or _is_plain(column.type) or pa.types.is_null(column.type)):
            return np.full(len(column), _UNKNOWN)
        valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
        values = _as_integers(column)
        codes = self.table.encode(values, valid) if add else self.table.find(values, valid)
        if pa.types.is_uint64(column.type):
            codes[values < 0] = _UNKNOWN  # beyond int64, where no key is
        return codes


def _codes_of(kind: pa.DataType, tables: KeyTables) -> Any:
    """Return the codes of values of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _codes_of(kind.storage_type, tables)
    if pa.types.is_dictionary(kind):
        return _codes_of(kind.value_type, tables)
    if tables.texts is not None and (is_text(kind) or _is_bytes(kind)):
        return tables.texts(kind)
    instant = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    plain = instant or pa.types.is_floating(kind) or (_is_plain(kind) and not pa.types.is_uint64(kind))
    return _IntegerCodes(tables.integers()) if plain else _Codes(texts=is_text(kind))


def _held(columns: Sequence[pa.Array]) -> int:
    """Return the bytes that columns keep alive."""
    return sum(column.get_total_buffer_size() for column in columns)


def _can_be_read(level: Level, kind: pa.DataType) -> bool:
    """Return whether the codes of a column of type ``kind`` give its values back."""
    if isinstance(level, _IntegerCodes):
        instant = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
        return instant or kind.id in _WHOLE
    return not isinstance(level, _Codes) and not isinstance(kind, pa.BaseExtensionType)


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are texts between offsets."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _as_integers(column: pa.Array) -> NDArray[Any]:
    """Return integers, or booleans as such, without copying if they are; uint64 as int64, anything for nulls."""
    if column.null_count:
        column = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    plain = column.view(pa.int64()) if pa.types.is_uint64(column.type) else column
    integers: NDArray[Any] = plain.to_numpy()
    return integers


def occurring(slots: Integers, size: int) -> Integers:
    """Return the different slots among ``slots``, all below ``size``, ascending.

    O(slots + size), or where slots are few O(slots log slots).  ``np.unique`` hashes, which takes ten times as long.

    >>> occurring(np.array([3, 1, 3]), 5)
    array([1, 3])
    """
    if 16 * slots.size < size:
        ordered, first = np.sort(slots), np.empty(slots.size, np.bool_)
        first[:1], first[1:] = True, ordered[1:] != ordered[:-1]
        return ordered[first]
    seen = np.zeros(size, np.bool_)
    seen[slots] = True
    return seen.nonzero()[0]


def comparable(column: pa.Array) -> pa.Array:
    """Return values that are hashable in Python and equal exactly where the keys are."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return comparable(column.dictionary_decode())
    if isinstance(kind, pa.BaseExtensionType):
        return comparable(column.storage)
    if pa.types.is_float16(kind):
        return comparable(column.cast(pa.float32()))
    if pa.types.is_floating(kind):
        plain = pc.if_else(
            pc.is_nan(column), pa.scalar(float("nan"), kind), pc.add(column, pa.scalar(0.0, kind))
        )
        return plain.view(getattr(pa, f"int{kind.bit_width}")())
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return column.view(getattr(pa, f"int{kind.bit_width}")())
    if pa.types.is_decimal(kind) and kind.bit_width < 128:  # Arrow has no hash of these
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_interval(kind):  # no order in Arrow, so no equality either
        return column.view(pa.binary(16))
    if pa.types.is_nested(kind):  # no hash in Arrow: compared by their packed values
        packed = [
            None if v is None else msgpack.packb(plain_value(v), default=str)
            for v in counted(column).to_pylist()
        ]
        return pa.array(packed, pa.binary())
    return column


def plain_value(value: Any) -> Any:
    """Return a nested value with one NaN and one zero, whatever their signs."""
    match value:
        case float():
            return value + 0.0 if value == value else "nan"
        case list() | tuple():
            return [plain_value(v) for v in value]
        case dict():
            return {name: plain_value(v) for name, v in value.items()}
    return value
