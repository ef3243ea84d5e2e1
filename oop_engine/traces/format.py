"""The protocol of trace formats: a reader, a writer, and errors that name the file.

A reader yields record batches as they stand in the file, and the punctuation between them;
values are validated and cast in one place for all formats (``validation.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, TypeAlias

import msgpack
import pyarrow as pa

from oop_engine.core.errors import TraceError
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.values.arrow_data import TIME_KEYS

__all__ = [
    "LINE",
    "LINE_NUMBER",
    "REFUSED",
    "Marks",
    "Reader",
    "Record",
    "Writer",
    "is_textual",
    "plain",
    "readable",
    "require_textual",
]

Record: TypeAlias = pa.RecordBatch | Punctuation
"""The two kinds of record in a file."""

REFUSED, LINE, LINE_NUMBER = "oop_engine.refused", "oop_engine.line", "oop_engine.line_number"
"""Columns beside those asked for: why a row cannot be read (null: it can), its text, and its place."""


@dataclass(frozen=True)
class Marks:
    """Metadata of a file: the progressing column, its unit, the column of arrival times.

    The binary formats keep it with their columns, so that such a trace opens by its path alone.
    """

    time: str = ""
    unit: str = ""
    arrival: str = ""

    def on(self, fields: pa.Schema) -> pa.Schema:
        """Return ``fields`` with the marks as metadata."""
        return fields.with_metadata(dict(zip(TIME_KEYS, (self.time, self.unit, self.arrival), strict=True)))

    @classmethod
    def of(cls, fields: pa.Schema) -> Marks:
        """Return the marks found in the metadata of ``fields``; a missing one is ''."""
        metadata = fields.metadata or {}
        return cls(*(metadata.get(key.encode(), b"").decode() for key in TIME_KEYS))


class Reader(Protocol):
    """Made from a path; ``times`` are the columns that must be integers or timestamps.

    ``fields``: the columns of the file, with their types (of text: as its first block
    suggests).  ``marks``: the file's metadata.  ``guessed``: the types are guesses,
    so the values decide.  ``sparse``: a column may be left out where it is null.  ``crowded``: there are
    more columns than ``fields`` has; the wanted ones must be given.
    """

    guessed: ClassVar[bool]
    sparse: ClassVar[bool]

    @property
    def crowded(self) -> bool:
        """Whether there are more columns than ``fields`` has."""
        ...

    fields: pa.Schema
    marks: Marks

    def __init__(self, path: Path, times: tuple[str, ...] = ()) -> None: ...

    def read(self, columns: pa.Schema, page_rows: int) -> Iterator[Record]:
        """Yield the records of the file, in order; only ``columns``, each of its own type or as text."""
        ...


class Writer(Protocol):
    """Made from a sink, the columns and the marks; the sink is closed by who opened it."""

    def __init__(self, sink: pa.NativeFile, fields: pa.Schema, marks: Marks) -> None: ...

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        ...

    def punctuation(self, punctuation: Punctuation) -> None:
        """Append a punctuation; raises ``TraceError`` if the format carries none."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


_UNREADABLE = (
    pa.ArrowException, msgpack.UnpackException, OSError, EOFError, MemoryError, RecursionError, ArithmeticError,
    LookupError, TypeError, ValueError,
)  # fmt: skip
"""Exceptions that libraries raise over a malformed file."""


@contextmanager
def readable(path: Path, way_out: str = "write it anew, or check that it was copied whole") -> Iterator[None]:
    """Turn an exception while reading ``path`` into a ``TraceError`` with the path and the way out."""
    try:
        yield
    except TraceError:
        raise
    except _UNREADABLE as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        msg = f"{path}: cannot be read ({reason}): {way_out}"
        raise TraceError(msg) from error


def plain(fields: pa.Schema) -> pa.Schema:
    """Return ``fields`` with dictionary columns decoded: how they are kept in a file."""
    kinds = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in fields]
    return pa.schema([f.with_type(kind) for f, kind in zip(fields, kinds, strict=True)])


def is_textual(kind: pa.DataType) -> bool:
    """Return whether values of this type can be written as text and read back the same."""
    tests = (
        pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null, pa.types.is_string,
        pa.types.is_large_string, pa.types.is_timestamp, pa.types.is_date32, pa.types.is_time, pa.types.is_decimal,
    )  # fmt: skip
    return kind != pa.float16() and any(test(kind) for test in tests)


def require_textual(fields: pa.Schema, format: str) -> None:
    """Raise ``TraceError`` if a column of ``fields`` cannot be text."""
    for field in fields:
        if not is_textual(field.type) or pa.types.is_null(field.type):
            more = "" if pa.types.is_interval(field.type) else ", parquet"
            msg = f"{format}: column {field.name!r}: {field.type} has no text form: use arrow, msgpack{more}"
            raise TraceError(msg)
