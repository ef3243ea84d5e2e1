"""Formats of traces: each is a reader and a writer under a name; ``register_format`` adds one of your own.

What is known here is known everywhere: ``open_trace``, ``write_trace``, the program, and a folder of traces on Spark,
whose tasks are given the formats that were registered from outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.core.registry import Registry
from oop_engine.traces.compressed import CODECS, is_compressed, opened, without_codec
from oop_engine.traces.format import Reader, Writer
from oop_engine.traces.formats.arrow_ipc import ArrowReader, ArrowWriter
from oop_engine.traces.formats.csv import CsvReader
from oop_engine.traces.formats.csv_writer import CsvWriter
from oop_engine.traces.formats.json_lines import JsonReader, JsonWriter
from oop_engine.traces.formats.msgpack_frames import FramesReader, FramesWriter
from oop_engine.traces.formats.parquet import ParquetReader, ParquetWriter

__all__ = [
    "FORMATS",
    "TraceFormat",
    "foreign_formats",
    "format_of",
    "format_of_file",
    "is_format",
    "register_format",
    "suffixes",
]


@dataclass(frozen=True)
class TraceFormat:
    """A format of traces: its ``name``, which is also the usual suffix, and other suffixes of such files.

    ``compressed``: its reader takes files that are compressed as a whole (``a.csv.gz``; ``traces.compressed``).
    """

    name: str
    reader: type[Reader]
    writer: type[Writer]
    suffixes: tuple[str, ...] = ()
    compressed: bool = False


FORMATS = Registry[TraceFormat]("trace format")
"""All formats, by name."""
_HEAD = 256  # bytes, of which the first that is no space tells
_OF_SUFFIX = Registry[TraceFormat]("suffix of traces")


def register_format(format: TraceFormat) -> TraceFormat:
    """Make a format known in this process, and return it.

    Raises ``UsageError`` if its name or a suffix is that of another format.
    """
    home = format.reader.__module__
    for suffix in (format.name, *format.suffixes):
        _OF_SUFFIX.register(suffix, format, home)
    return FORMATS.register(format.name, format, home)


def foreign_formats() -> tuple[TraceFormat, ...]:
    """Return the formats that were registered from outside: another process does not know them by itself."""
    return tuple(
        format for name, format in FORMATS.items() if not FORMATS.home(name).startswith("oop_engine.")
    )


def format_of(path: str | Path, format: str | None = None) -> str:
    """Return the name of a file's format; raises ``UsageError`` if there is none such.

    >>> format_of("access.CSV.gz"), format_of("access.log", "jsonl")
    ('csv', 'jsonl')
    """
    name = format or without_codec(path).suffix.lower().lstrip(".")
    if name not in _OF_SUFFIX:
        if not format and Path(path).is_dir():
            msg = f"{path}: is a folder: give one of its files, or read all with scan({str(path)!r}) or GrowingFolder"
            raise UsageError(msg)
        known = sorted(_OF_SUFFIX)
        hint = did_you_mean(name, known)
        msg = f"{path}: unknown trace format {name!r}: use one of {', '.join(known)}{hint}"
        raise UsageError(msg)
    chosen = _OF_SUFFIX[name]
    if is_compressed(path) and not chosen.compressed:
        msg = f"{path}: format {chosen.name!r} is not read or written compressed: unpack it, or use another format"
        raise UsageError(msg)
    return chosen.name


def is_format(path: str | Path) -> bool:
    """Return whether the suffix of a path is that of a format."""
    return without_codec(path).suffix.lower().lstrip(".") in _OF_SUFFIX


def format_of_file(path: Path, format: str | None = None) -> str:
    """Return the name of the format of a file that is read: as ``format_of``, and JSON lines by its first object.

    So logs of JSON may have any suffix that is of no format, ``.log`` or ``.json``.
    """
    if format or is_format(path) or not path.is_file():
        return format_of(path, format)
    with opened(path) as file:
        if file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            return "jsonl"
    try:
        return format_of(path)
    except UsageError as error:
        error.args = (f"{error}; CSV of another suffix is read with csv=CsvFormat(), --csv",)
        raise


def suffixes() -> Iterable[str]:
    """Return the suffixes of all formats, without the dot, also with those of compressed files behind them."""
    packed = (
        f"{suffix}{codec}" for suffix, each in _OF_SUFFIX.items() if each.compressed for codec in CODECS
    )
    return [*_OF_SUFFIX.keys(), *packed]


for _format in (
    TraceFormat("parquet", ParquetReader, ParquetWriter, ("pq",), compressed=True),
    TraceFormat("arrow", ArrowReader, ArrowWriter, ("feather", "ipc"), compressed=True),
    TraceFormat("csv", CsvReader, CsvWriter, ("tsv",), compressed=True),
    TraceFormat("jsonl", JsonReader, JsonWriter, ("ndjson",), compressed=True),
    TraceFormat("msgpack", FramesReader, FramesWriter, compressed=True),
):
    register_format(_format)
