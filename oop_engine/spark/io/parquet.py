"""Parquet: results as files in a folder, for whatever reads Parquet."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oop_engine.connectors.change_feed import change_feed, feed_fields
from oop_engine.connectors.sink import key_columns
from oop_engine.core.errors import UnitError, UsageError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS, Length
from oop_engine.spark.io.result_folder import ResultFile, ResultFolder, Written, place_of
from oop_engine.spark.io.sink import BatchResults, Receipt

__all__ = ["Parquet", "ResultTable", "WriteFiles", "by_table", "sizes_of"]

_DAY_S = 86_400


@dataclass(frozen=True)
class ResultTable:
    """Where the results of one sink go: a folder, the columns of its files, and the window that divides it.

    ``width``: how much of the progressing attribute goes into one folder below; 0: there are none.
    ``key``: whose two changes in a page are the images of an update, where it is a revision stream.
    """

    folder: ResultFolder
    schema: Schema
    fields: pa.Schema
    width: int = 0
    key: tuple[str, ...] = ()

    def rows(self, page: Page, batch: int) -> pa.RecordBatch:
        """Return the rows of a page as its file has them: of a revision stream a change feed."""
        if self.schema.change is None:
            return page.batch
        return change_feed(page, self.key, batch, time.time())


@dataclass
class Parquet:
    """Writes the results of sink ``s`` to files in ``folder/s``; made by Spark, read by anything.

    ``by_window``: files are in a folder for each such length of the progressing attribute, such as
    ``window=2013-06-01`` for ``"1 d"``; rows with a column ``window_end`` are in the one where their window ends,
    at midnight in that of the day before, for ends are exclusive.

    After each commit, and after a restart that follows a kill, every result is in the folder once,
    for any reader; files are whole at any time.  A reader that looks while a batch is put in place, or between
    a kill in that moment and the restart, may see part of the last batch.

    A start with the checkpoint of a query makes sure that its files are still there, as long as they were.
    ``may_go``: whoever reads files may take them away; only those that are there are looked at.

    Of a revision stream the files are a change feed: columns ``_change_type``, ``_commit_version`` (the micro-batch)
    and ``_commit_timestamp`` instead of ``change``; two changes of one ``key`` in a page are the images of an update.
    """

    folder: str | Path
    by_window: Length | None = None
    may_go: bool = False
    key: str | Sequence[str] = ()
    exactly_once: str = "exactly once"
    _query: str = field(default="", init=False)
    _tables: dict[str, ResultTable] = field(default_factory=dict, init=False)
    _again: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.key = tuple(key_columns(self.key))

    def start(self, schemas: Mapping[str, Schema], query: str) -> None:
        """Check folders and types; remove unfinished files of killed runs."""
        self._query, self._again = query, True
        self._tables = {name: self._table(name, schema) for name, schema in schemas.items()}
        for name, table in self._tables.items():
            _check_types(name, table.fields)
        for table in self._tables.values():
            table.folder.prepare(query)

    def worker(self) -> WriteFiles:
        """Return the part in tasks: it writes files, which nobody sees yet."""
        return WriteFiles(self._tables)

    def check(self, made: Mapping[str, int]) -> None:
        """Raise ``UsageError`` if a file of earlier micro-batches is not as it was written."""
        for name, files in by_table(made).items():
            if name in self._tables:
                self._tables[name].folder.check(files, may_go=self.may_go)

    def commit(self, batch: int, results: BatchResults) -> Mapping[str, int]:
        """Move the files of a batch to their places."""
        made: dict[str, int] = {}
        for name, table in self._tables.items():
            folder = table.folder
            files = [Written.of(receipt) for receipt in results.of(name)]
            folder.claim(self._query)
            folder.put(files)
            if self._again:  # only the first batch of a run can have been here before
                committed = {folder.path / file.place for file in files}
                for path in set(folder.of_batch(batch)) - committed:
                    path.unlink()
            made |= sizes_of(name, folder, files)
        self._again = False
        return made

    def _table(self, name: str, schema: Schema) -> ResultTable:
        folder, width = folder_of("Parquet", self.folder, name), self._width(schema)
        if schema.change is None:
            return ResultTable(folder, schema, schema.fields, width)
        schema.plain().require(self.key, f"sink {name!r}: Parquet: key")
        return ResultTable(folder, schema, feed_fields(schema), width, tuple(self.key))

    def _width(self, schema: Schema) -> int:
        if self.by_window is None:
            return 0
        width = schema.length(self.by_window, "Parquet: by_window")
        if width <= 0:
            msg = f"Parquet: by_window must be longer than nothing; got {self.by_window!r}"
            raise UnitError(msg)
        if "window" in schema.names:
            msg = "Parquet: by_window makes folders 'window=...', and there is a column 'window': rename it"
            raise UsageError(msg)
        return width


@dataclass(frozen=True)
class WriteFiles:
    """Writes the results of one partition to unfinished files: one a table, and folder of windows."""

    tables: Mapping[str, ResultTable]

    def __call__(
        self, batch: int, partition: int, results: Iterable[tuple[str, Message]]
    ) -> Iterator[Receipt]:
        """Take results; yield the receipts of files."""
        files: dict[tuple[str, str], ResultFile] = {}
        for name, page in results:
            if not isinstance(page, Page) or not len(page):
                continue
            table = self.tables[name]
            for level, part in divided(page, table.schema, table.width):
                if (name, level) not in files:
                    place = level + place_of(batch, partition)
                    files[name, level] = ResultFile(table.folder, place, table.fields)
                files[name, level].add(table.rows(part, batch))
        for (name, _), file in files.items():
            yield file.close().receipt(name)


def folder_of(kind: str, folder: str | Path, name: str) -> ResultFolder:
    """Return the folder for results of sink ``name``; raises ``UsageError`` for an address of elsewhere."""
    if "://" in str(folder):
        msg = (
            f"sink {kind}: {folder} is not a folder of this machine: give a path, that of a shared or mounted "
            f"folder on a cluster; or write with ForeachBatch"
        )
        raise UsageError(msg)
    return ResultFolder(Path(folder).absolute() / name, kind)


def by_table(made: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the files of each sink of the graph, by their places in its folder, with their bytes."""
    by_table: dict[str, dict[str, int]] = {}
    for path, size in made.items():
        name, _, place = path.partition("/")
        by_table.setdefault(name, {})[place] = size
    return by_table


def sizes_of(name: str, folder: ResultFolder, files: Iterable[Written]) -> dict[str, int]:
    """Return the bytes of files that are in their places, by sink of the graph and place."""
    return {f"{name}/{file.place}": (folder.path / file.place).stat().st_size for file in files}


def divided(page: Page, schema: Schema, width: int) -> Iterator[tuple[str, Page]]:
    """Yield the rows of each folder of windows, with its name.  O(n log n) of n rows."""
    if not width or not len(page):
        yield "", page
        return
    exclusive = schema.progressing in ("window_end", "time_end")
    starts = (page.times - exclusive) // width * width
    order = np.argsort(starts, kind="stable")
    page, starts = page.take(order), starts[order]
    for first, stop in itertools.pairwise([0, *(np.flatnonzero(np.diff(starts)) + 1).tolist(), len(page)]):
        label = _label(int(starts[first]), width, schema)
        yield f"window={label}/", page.slice(first, stop)


def _label(start: int, width: int, schema: Schema) -> str:
    if not pa.types.is_timestamp(schema.type_of(schema.progressing)):
        return str(start)
    second = TIME_UNITS[schema.unit]
    unit = "D" if width % (_DAY_S * second) == 0 else "s" if width % second == 0 else schema.unit
    moment = np.array(start).astype(f"datetime64[{schema.unit}]").astype(f"datetime64[{unit}]")
    return str(moment).replace(":", "-")


def _check_types(name: str, fields: pa.Schema) -> None:
    for column in fields:
        try:
            pq.write_table(pa.schema([column]).empty_table(), pa.BufferOutputStream())
        except (pa.ArrowException, NotImplementedError) as error:
            msg = f"sink {name!r}: Parquet cannot hold column {column.name!r} of type {column.type}: leave it out"
            raise UsageError(msg) from error
