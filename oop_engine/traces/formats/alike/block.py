"""Alike: a block of text whose rows are all written as its first one becomes columns in one pass, by a kernel.

Most files are written by a program, row after row in the same way.  A block with a row that is written otherwise is
left to the other readers, so the kernel changes the meaning of nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from threading import Thread
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from oop_engine.system.knobs import knob
from oop_engine.traces.formats.alike.kernel import (
    COLUMN,
    FLOAT,
    INTEGER,
    KIND,
    LEAST,
    LITERAL,
    LITERAL_END,
    MOST,
    NOTHING,
    NULLABLE,
    PLACE,
    STOPS,
    TEXT,
    WIDTH,
    read_alike,
)

__all__ = ["Alike", "Cell", "Seen", "kind_of"]

_AFTER = knob(__name__, "_AFTER", 1 << 20)
"""Bytes: to load the kernel from the cache takes 1 ms, and over so many JSON lines it saves 7 ms."""
_LEAST_BYTES = knob(__name__, "_LEAST_BYTES", 1 << 14)


class Seen:
    """The bytes of a file or stream so far: after 1 MiB the kernel is worth its loading.

    ``load``: loads it on a thread, so that no turn of an event loop waits for it; it is tried from then on.
    """

    def __init__(self, load: Callable[[], object] | None = None) -> None:
        self._bytes, self._load = 0, load

    def enough(self, lines: bytes) -> bool:
        """Count the bytes of a block, and tell whether to try the kernel with it."""
        self._bytes += len(lines)
        if self._bytes < _AFTER or len(lines) < _LEAST_BYTES:
            return False
        return self._load is None or not _loading(self._load).is_alive()


@cache
def _loading(load: Callable[[], object]) -> Thread:
    """Return the thread that runs ``load``, or has run it.  No daemon: a process may not end within LLVM."""
    thread = Thread(target=load)
    thread.start()
    return thread


class Cell(NamedTuple):
    """``literal`` stands before the cell, whose ``kind`` is ``TEXT``, ``INTEGER`` or ``FLOAT``.

    ``name``, ``type``: of its column; None: the cell is dropped.  ``stops``: which bytes end a text.  ``nullable``: an
    empty cell is null.
    """

    literal: bytes
    kind: int
    name: str | None
    type: pa.DataType | None
    stops: int = 0
    nullable: bool = False


class Alike:
    """``cells`` of each row, and the literal at its ``end``, a line feed in the last place; ``stops`` bool (n, 256)."""

    def __init__(self, cells: Sequence[Cell], end: bytes, stops: np.ndarray) -> None:
        self._cells, self._stops = cells, stops
        self._literals = np.frombuffer(b"".join(cell.literal for cell in cells) + end, np.uint8)
        self._forms = np.zeros((len(cells) + 1, WIDTH), np.int64)
        self._counts = dict.fromkeys((TEXT, INTEGER, FLOAT), 0)
        at = places = 0
        for form, cell in zip(self._forms, cells, strict=False):
            form[[LITERAL, LITERAL_END, KIND]] = at, at + len(cell.literal), cell.kind
            at += len(cell.literal)
            form[[PLACE, STOPS, NULLABLE]] = -1, cell.stops, cell.nullable
            form[[LEAST, MOST]] = -(2**63), 2**63 - 1
            if cell.name is not None:
                form[[PLACE, COLUMN]] = places, self._counts[cell.kind]
                places, self._counts[cell.kind] = places + 1, self._counts[cell.kind] + 1
            if cell.kind == INTEGER and cell.type is not None:
                form[[LEAST, MOST]] = _range(cell.type)
        self._forms[-1, [LITERAL, LITERAL_END, KIND]] = at, at + len(end), NOTHING
        self._places = places

    def read(self, lines: bytes) -> tuple[dict[str, pa.Array], int] | None:
        """Return the columns of whole lines, and the number of rows; None: a row is written in another way.

        Texts are of type ``string``: the lines must be UTF-8.
        """
        data = np.frombuffer(lines, np.uint8)
        rows = int(np.count_nonzero(data == ord("\n")))
        integers = np.empty((self._counts[INTEGER], rows), np.int64)
        floats = np.empty((self._counts[FLOAT], rows), np.float64)
        texts = np.empty((self._counts[TEXT], data.size), np.uint8)
        ends = np.zeros((self._counts[TEXT], rows + 1), np.int32)
        valid = np.ones((self._places, rows), np.bool_)
        if not read_alike(
            data, self._literals, self._forms, self._stops, integers, floats, texts, ends, valid
        ):
            return None
        columns = {}
        for form, cell in zip(self._forms, self._cells, strict=False):
            if cell.name is None or cell.type is None:
                continue
            at, known = form[COLUMN], _bits(valid[form[PLACE]])
            if cell.kind == TEXT:
                whole = pa.py_buffer(texts[at, : ends[at, -1]].tobytes())
                buffers = [known, pa.py_buffer(ends[at]), whole]
                columns[cell.name] = pa.Array.from_buffers(pa.string(), rows, buffers)
            else:
                values = integers[at] if cell.kind == INTEGER else floats[at]
                numbers = np.ascontiguousarray(values.astype(cell.type.to_pandas_dtype(), copy=False))
                columns[cell.name] = pa.Array.from_buffers(cell.type, rows, [known, pa.py_buffer(numbers)])
        return columns, rows


def kind_of(kind: pa.DataType) -> int:
    """Return how the kernel reads cells of a type; all but integers and floats of 64 bits as texts."""
    if pa.types.is_integer(kind):
        return INTEGER
    return FLOAT if pa.types.is_float64(kind) else TEXT


def _range(kind: pa.DataType) -> tuple[int, int]:
    ends = np.iinfo(kind.to_pandas_dtype())
    return int(ends.min), min(int(ends.max), 2**63 - 1)


def _bits(valid: np.ndarray) -> pa.Buffer | None:
    """Return the bitmap of the values that are there; None: all are."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
