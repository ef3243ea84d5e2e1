"""JSON keys: the names in the objects of many lines, and how often each is there, without reading the values.

Strings end at quotes.  One is a key if a colon follows on it, and it is of the row itself if one bracket is open
there.  Keys of one length lie beside each other then, and Arrow counts them.  O(bytes).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["LONGEST", "keys_of"]

LONGEST = 64
"""Bytes of a name, at most: of a longer one the first so many."""

_QUOTE, _COLON, _SPACE = (ord(sign) for sign in '": ')


def keys_of(lines: bytes) -> Iterator[tuple[str, int]]:
    r"""Yield names and how often they are there, of lines that are an object of JSON each.

    >>> sorted(keys_of(b'{"ts": 1, "x": {"y": ":"}}\n{"ts": 2}\n'))
    [('ts', 2), ('x', 1)]
    """
    letters = np.frombuffer(_without_escapes(lines), np.uint8)
    quotes = np.flatnonzero(letters == _QUOTE)
    opens, closes = quotes[0::2], quotes[1::2]
    keys = np.flatnonzero(_followed_by_colon(letters, closes))
    step = _step(letters)
    brackets = step[step != 0]
    if brackets.size > 2 * (lines.count(b"\n") + 1) or (brackets[1:] == brackets[:-1]).any():
        keys = keys[_depth(letters, step)[opens[keys]] == 1]
    starts = opens[keys] + 1
    return _counted(lines, starts, np.minimum(closes[keys] - starts, LONGEST))


def _without_escapes(lines: bytes) -> bytes:
    """Return as many bytes, in which each quote begins or ends a string."""
    return lines.replace(rb"\\", b"__").replace(rb"\"", b"__") if b"\\" in lines else lines


def _followed_by_colon(letters: NDArray[np.uint8], closes: NDArray[np.int64]) -> NDArray[np.bool_]:
    following = letters[np.minimum(closes + 1, len(letters) - 1)]
    if (following <= _SPACE).any():
        there = np.flatnonzero(letters > _SPACE)
        following = letters[there[np.minimum(np.searchsorted(there, closes, "right"), len(there) - 1)]]
    keys: NDArray[np.bool_] = following == _COLON
    return keys


def _step(letters: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Return by how many levels each byte leads in (or, below 0, out), if it is not in a string."""
    folded = letters | 0x20  # [ is { then, and ] is }
    step: NDArray[np.int8] = (folded == ord("{")).view(np.int8) - (folded == ord("}")).view(np.int8)
    return step


def _depth(letters: NDArray[np.uint8], step: NDArray[np.int8]) -> NDArray[np.int64]:
    step[np.logical_xor.accumulate(letters == _QUOTE)] = 0
    return np.cumsum(step)


def _counted(
    lines: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Iterator[tuple[str, int]]:
    if not len(starts):
        return
    order = np.argsort(lengths.astype(np.uint8), kind="stable")
    for alike in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        length = int(lengths[alike[0]])
        if not length:
            yield "", len(alike)
            continue
        names = np.ndarray((len(lines) - length + 1,), f"V{length}", lines, strides=(1,))[starts[alike]]
        column = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(length), len(names), [None, pa.py_buffer(names)]
        )
        for each in column.value_counts().to_pylist():
            yield _read(each["values"]), each["counts"]


def _read(name: bytes) -> str:
    """Return a name as text: also one that was written with escapes, or cut within a character."""
    try:
        return str(json.loads(b'"' + name + b'"'))
    except ValueError:
        return name.decode(errors="replace")
