"""The files that go in: found, opened at their heads, and held against the declaration before anything starts."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import TraceError, UsageError
from oop_engine.core.values.kinds import converts
from oop_engine.pipeline.declaration import Column, Declaration
from oop_engine.traces.compressed import CODECS, opened
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.folder import LeftOut, files_of
from oop_engine.traces.formats.csv_rows import CsvRows
from oop_engine.traces.formats.json_lines import JsonReader
from oop_engine.traces.formats.partitions import partition_column, partitions

__all__ = ["ARROW_TYPES", "FileLayout", "Input", "find_inputs", "layouts"]

_SUFFIXES = {
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".json", ".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
}
_LONGEST_HEADER = 1 << 20
_SHOWN = 20
_LONGEST_SHOWN = 80

ARROW_TYPES = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "float32": pa.float32(),
    "float64": pa.float64(), "string": pa.string(), "bool": pa.bool_(), "date32": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}  # fmt: skip
"""Arrow types of the types of a declaration."""


@dataclass(frozen=True)
class Input:
    """A file; ``number``: its place in the order of the files, which orders rows that nothing else orders."""

    number: int
    path: Path
    nbytes: int


@dataclass(frozen=True)
class FileLayout:
    """Files with the same columns; ``types``: those of Parquet, by column (text formats: all are text).

    ``of_folders``: columns whose values are in the names of the folders above the files (``year=2026``).
    """

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    files: tuple[Input, ...]
    of_folders: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns: those of the files, and those of folders."""
        return (*self.names, *self.of_folders)

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column as it is read."""
        return pa.string() if name in self.of_folders else self.types[self.names.index(name)]


def find_inputs(paths: Sequence[Path], format: str) -> list[Input]:
    """Return the files given, and those in the folders given, by name; names with '.' or '_' in front are of others.

    Folders called ``name=value`` are read, too.  Files that are left out are logged, once a suffix.
    Raises ``UsageError`` if a path does not exist, is given twice, or a folder has no file of this format.
    """
    inputs: list[Path] = []
    for path in paths:
        if not path.is_file() and not path.is_dir():
            msg = (
                f"{path}: there is no such file or folder"
                if not path.exists()
                else f"{path}: is no file or folder"
            )
            raise UsageError(msg)
        inputs += _in_folder(path, format) if path.is_dir() else [path]
    absolute = [path.resolve() for path in inputs]
    for at, path in enumerate(absolute):
        if path in absolute[:at]:
            msg = f"{inputs[at]}: is given twice, its rows would count twice"
            raise UsageError(msg)
    return [Input(number, path, path.stat().st_size) for number, path in enumerate(absolute)]


def _in_folder(folder: Path, format: str) -> list[Path]:
    packed = [s + codec for s in _SUFFIXES[format] for codec in CODECS if format != "parquet"]
    suffixes = (*_SUFFIXES[format], *packed)
    others = LeftOut(f"files of format {format!r} end in {', '.join(suffixes)}")
    inputs = [
        folder / name for name in files_of(folder, others, lambda name: name.lower().endswith(suffixes))
    ]
    if not inputs:
        msg = f"{folder}: no {format} file in it: names must end in {', '.join(suffixes)}"
        raise UsageError(msg)
    return inputs


def layouts(declaration: Declaration, inputs: Iterable[Input]) -> list[FileLayout]:
    """Return the files by their columns.

    Raises ``TraceError`` if a file has no head that can be read, lacks a declared column, or (Parquet) has one
    of a type whose values cannot become the declared one.
    """
    together: dict[tuple[Any, ...], list[Input]] = {}
    for file in inputs:
        texts = partitions(file.path)
        names, types = _columns(declaration, file.path, texts)
        for name, column in declaration.columns.items():
            if name in names:
                _check_type(file.path, name, column, types[names.index(name)])
            elif name not in texts:
                there = [*names, *texts]
                msg = f"{file.path}: no column {name!r}; there are {', '.join(there)}{did_you_mean(name, there)}"
                raise TraceError(msg)
            elif not column.format:
                partition_column(file.path, name, texts[name], ARROW_TYPES[column.type])
        of_folders = tuple(name for name in declaration.columns if name not in names)
        together.setdefault((names, types, of_folders), []).append(file)
    return [FileLayout(names, types, tuple(files), more) for (names, types, more), files in together.items()]


def _columns(
    declaration: Declaration, path: Path, of_folders: Collection[str]
) -> tuple[tuple[str, ...], tuple[pa.DataType, ...]]:
    if declaration.format == "parquet":
        try:
            fields = pq.read_schema(path)
        except (pa.ArrowException, OSError) as error:
            msg = f"{path}: cannot be read ({' '.join(str(error).split())}): give Parquet files, or another format"
            raise TraceError(msg) from error
        _check_names(f"{path}: its columns must have names", fields.names)
        return tuple(fields.names), tuple(fields.types)
    if declaration.format == "csv" and declaration.csv.header:
        names = _header(path, declaration.csv)
    elif declaration.csv.names:
        names = tuple(declaration.csv.names)
        _check_names(f"{declaration.path}: [csv] names must be names of columns", names)
    else:
        there = JsonReader(path).fields.names if declaration.format == "json" and of_folders else ()
        names = tuple(name for name in declaration.columns if name in there or name not in of_folders)
    return names, (pa.string(),) * len(names)


def _header(path: Path, format: CsvFormat) -> tuple[str, ...]:
    encoding = format.encoding or "utf-8"
    try:
        with opened(path) as file:
            head = file.read(_LONGEST_HEADER).removeprefix(codecs.BOM_UTF8)
        end = head.rfind(b"\n") + 1 or len(head)
        cells, text, _ = CsvRows(format, [""], spans=False).header(_as_utf8(head[:end], encoding))
        if cells is None:
            msg = f"got {text[:_LONGEST_SHOWN]!r}" if text else "empty"
            raise ValueError(msg)
        names = [cell.decode() for cell in cells]
    except (OSError, ValueError) as error:
        msg = f"{path}: its first line must be names of columns ({error})"
        raise TraceError(msg) from error
    _check_names(f"{path}: its first line must be names of columns", names)
    return tuple(names)


def _as_utf8(head: bytes, encoding: str) -> bytes:
    return (
        head
        if codecs.lookup(encoding).name.startswith("utf-8")
        else head.decode(encoding, "replace").encode()
    )


def _check_names(what: str, names: Sequence[str]) -> None:
    folded = [name.lower() for name in names]
    if not names or len(set(folded)) < len(folded) or not all(names):
        got = ", ".join(names[:_SHOWN]) + ("..." if len(names) > _SHOWN else "")
        msg = f"{what}, each another; got {got or 'none'}"
        raise TraceError(msg)


def _check_type(path: Path, name: str, column: Column, given: pa.DataType) -> None:
    wanted = ARROW_TYPES[column.type]
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return
    if pa.types.is_date(given) and pa.types.is_timestamp(wanted):
        return
    if not converts(given, wanted):
        msg = f"{path}: column {name!r} must be {column.type}; got {given}: declare it as that"
        raise TraceError(msg)
