"""Key groups: which of the subtasks of an operator a tuple belongs to.

A key group is a set of keys that travel and live together.  Its number follows from the
values of the key columns alone, so that every process, today and after a restart, finds the same.
Keys that are the same for GROUP BY (``oop_engine.core.groups.group_index``) are in the same group.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.group_index import comparable

__all__ = ["key_groups", "partition_of", "spread"]

Hashes = NDArray[np.uint64]
_NULL = np.uint64(0x9E3779B97F4A7C15)
_LOW = 0xFFFFFFFF
_BASE = np.uint64(0x9E3779B97F4A7C55)  # odd, so that it has an inverse


def key_groups(columns: Sequence[pa.Array], groups: int) -> NDArray[np.int64]:
    """Return the group of each row, int64 (rows,), from 0 to ``groups`` - 1; at least one column.

    O(bytes) in NumPy for integers, times, floats, texts and decimals; of others, one checksum a distinct value.

    >>> key_groups([pa.array(["a", "b", "a", None])], groups=8).tolist()
    [1, 4, 1, 7]
    """
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = _mixed(hashes + _hashes(comparable(column)))
    return (hashes % np.uint64(groups)).astype(np.int64)


def spread(wanted: Sequence[int], partitions: int) -> list[int]:
    """Return a number for each group, which Spark puts into the ``wanted`` one of its partitions.

    Spark hashes the values that it groups by, so neighbours could all meet in one task.
    The numbers are all different.
    """
    candidates: dict[int, list[int]] = {}
    numbers = []
    candidate = 0
    for partition in wanted:
        while not candidates.get(partition):
            candidates.setdefault(partition_of(candidate, partitions), []).append(candidate)
            candidate += 1
        numbers.append(candidates[partition].pop(0))
    return numbers


def partition_of(number: int, partitions: int) -> int:
    """Return the partition of an int column's value in Spark: Murmur3 (x86, 32 bits, seed 42), modulo.

    >>> [partition_of(number, 4) for number in (0, 1, 2, 1000)]
    [3, 3, 2, 1]
    """
    k = number & _LOW
    k = _rotated(k * 0xCC9E2D51 & _LOW, 15) * 0x1B873593 & _LOW
    h = (_rotated(42 ^ k, 13) * 5 + 0xE6546B64) & _LOW
    h ^= 4  # bytes of an int
    h = (h ^ h >> 16) * 0x85EBCA6B & _LOW
    h = (h ^ h >> 13) * 0xC2B2AE35 & _LOW
    h ^= h >> 16
    return (h - (1 << 32) if h >> 31 else h) % partitions


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _LOW


def _mixed(values: Hashes) -> Hashes:
    """Spread the bits (the finalizer of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def _hashes(column: pa.Array) -> Hashes:
    kind = column.type
    if not len(column):
        return np.empty(0, np.uint64)
    hashes: Hashes
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        wide = column if pa.types.is_uint64(kind) else column.cast(pa.int64())
        hashes = wide.fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64) + np.uint64(1)
    elif _of_bytes(kind):
        hashes = _text_hashes(column)
    elif pa.types.is_decimal128(kind):
        words = _values_of(column, np.uint64, 2).reshape(-1, 2)
        hashes = _mixed(words[:, 0]) + words[:, 1]
    else:
        encoded = column.dictionary_encode()
        checksums = [_checksum(value) for value in encoded.dictionary.to_pylist()] or [0]
        indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        hashes = np.array(checksums, np.uint64)[indices]
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return hashes


def _of_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return any(
        test(kind)
        for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def _text_hashes(column: pa.Array) -> Hashes:
    """Return a hash of the bytes of each value: a polynomial in an odd number, modulo 2**64.

    Sums of all bytes, each times the power of its place, are made once; a value is a difference of two of them.  It is
    brought to the power of the place behind all bytes, and from there to that of its own first byte.
    """
    large = column.type in (pa.large_string(), pa.large_binary())
    _, places, content = column.buffers()
    ends = np.frombuffer(places, np.int64 if large else np.int32)[
        column.offset : column.offset + len(column) + 1
    ]
    first, last = (int(ends[0]), int(ends[-1])) if len(column) else (0, 0)
    raw = np.frombuffer(content, np.uint8, last - first, first) if last > first else np.empty(0, np.uint8)
    powers = np.full(raw.size + 1, _BASE)
    powers[0] = 1
    np.multiply.accumulate(powers, out=powers)
    sums = np.zeros(raw.size + 1, np.uint64)
    np.cumsum((raw + np.uint64(1)) * powers[:-1], out=sums[1:])
    ends = ends - first
    products = (sums[ends[1:]] - sums[ends[:-1]]) * powers[raw.size - ends[:-1]]
    hashes: Hashes = products * np.uint64(pow(int(_BASE), -raw.size, 1 << 64)) + np.uint64(1)
    return hashes


def _values_of(column: pa.Array, kind: type[np.uint64], words: int) -> NDArray[np.uint64]:
    """Return the words of a column of one width."""
    return np.frombuffer(column.buffers()[1], kind)[
        column.offset * words : (column.offset + len(column)) * words
    ]


def _checksum(value: Any) -> int:
    return zlib.crc32(value if isinstance(value, bytes) else repr(value).encode()) + 1
