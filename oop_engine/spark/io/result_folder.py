"""A folder of results: files come into it whole, under names that follow from batch and partition.

    _unfinished/                  files that tasks write; cleared at each start
    _query                        whose results these are
    batch-000012-00003.parquet    partition 3 of batch 12

A file is moved to its place by a rename, over the file that the same batch has put there before.  So a reader
sees whole files only; one that looks while a batch is being put in place may see part of its files.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq

from oop_engine.core.errors import UsageError
from oop_engine.spark.io.sink import Receipt
from oop_engine.system.knobs import knob

__all__ = ["ResultFile", "ResultFolder", "Written"]

_ROWS = knob(__name__, "_ROWS", 1 << 17)  # rows of a row group
_SHARE = "driver and tasks must share the folder"


@dataclass(frozen=True)
class Written:
    """A file that a task has written: where it is, and where it belongs, both within the folder."""

    unfinished: str
    place: str
    rows: int

    def receipt(self, sink: str) -> Receipt:
        """Return it as it travels to the driver."""
        return Receipt(sink, self.rows, bytes(msgpack.packb([self.unfinished, self.place])))

    @classmethod
    def of(cls, receipt: Receipt) -> Written:
        """Return the file that a receipt is of."""
        unfinished, place = msgpack.unpackb(receipt.body)
        return cls(unfinished, place, receipt.tuples)


class ResultFile:
    """A Parquet file that is being written, some rows at a time.

    It is opened for its first row group: a task may have thousands of small ones, and may not open so many.
    """

    def __init__(self, folder: ResultFolder, place: str, fields: pa.Schema) -> None:
        self._place, self._fields = place, fields
        self._unfinished = f"_unfinished/{uuid.uuid4().hex}"
        self._folder = folder
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._written = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._waiting.append(batch if batch.schema == self._fields else batch.cast(self._fields))
        self._rows += batch.num_rows
        if self._rows - self._written >= _ROWS:
            self._flush()

    def close(self) -> Written:
        """Finish the file."""
        self._flush().close()
        return Written(self._unfinished, self._place, self._rows)

    def _flush(self) -> pq.ParquetWriter:
        writer = self._writer = self._writer or self._folder.writer(self._unfinished, self._fields)
        writer.write_table(pa.Table.from_batches(self._waiting, self._fields))
        self._waiting, self._written = [], self._rows
        return writer


@dataclass(frozen=True)
class ResultFolder:
    """The folder at ``path``, of a sink of kind ``kind``; driver and tasks see it under the same path."""

    path: Path
    kind: str

    def prepare(self, query: str) -> None:
        """Make the folder ready for results of ``query``.

        Raises ``UsageError`` if it cannot be written, or if there are results of others in it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            owner = self._owner()
            if owner not in (None, self._name(query)):
                msg = "it has results of another query: take an empty folder, or the checkpoint of that query"
                raise self.error(msg)
            if owner is None and (others := sorted(self._others())):
                msg = f"it is not empty, there is {others[0]}: take an empty folder"
                raise self.error(msg)
            shutil.rmtree(self.path / "_unfinished", ignore_errors=True)
            (self.path / "_unfinished").mkdir()
        except OSError as error:
            msg = f"it cannot be written ({error.strerror}): give one that can"
            raise self.error(msg) from error

    def check(self, made: Mapping[str, int], *, may_go: bool = False) -> None:
        """Make sure that files are there as they were written; ``made``: their bytes, by place.

        Raises ``UsageError`` if not.  ``may_go``: those that are gone are left out of account.
        """
        for place, size in made.items():
            path = self.path / place
            now = path.stat().st_size if path.exists() else None
            if now == size or (now is None and may_go):
                continue
            change = "is gone" if now is None else f"has {now} bytes, and had {size}"
            msg = f"{place}, which this query has written, {change}: restore the file, or start with empty folders"
            raise self.error(msg)

    def claim(self, query: str) -> None:
        """Say whose results are here; raises ``UsageError`` if another query was faster."""
        name, file = self._name(query), self.path / "_query"
        with suppress(FileExistsError), file.open("x") as new:
            new.write(name)
        if self._owner() is None:  # there was a kill between the two lines above
            file.write_text(name)
        if self._owner() != name:
            msg = "another query has begun to write to it: take an empty folder for each"
            raise self.error(msg)

    def writer(self, unfinished: str, fields: pa.Schema) -> pq.ParquetWriter:
        """Return the writer of an unfinished file; raises ``UsageError`` where the folder is not to be seen."""
        try:
            return pq.ParquetWriter(self.path / unfinished, fields)
        except FileNotFoundError as error:
            msg = f"the driver made it, and a task does not see it: {_SHARE}"
            raise self.error(msg) from error

    def put(self, files: list[Written]) -> None:
        """Move files to their places."""
        for file in files:
            place = self.path / file.place
            try:
                place.parent.mkdir(exist_ok=True)
                (self.path / file.unfinished).replace(place)
            except FileNotFoundError as error:
                msg = f"a file that a task wrote is not here ({error}): {_SHARE}"
                raise self.error(msg) from error

    def drop(self, files: list[Written]) -> None:
        """Remove files that are not wanted after all."""
        for file in files:
            (self.path / file.unfinished).unlink(missing_ok=True)

    def of_batch(self, batch: int) -> Iterator[Path]:
        """Yield the files of a batch that are in place.  O(files in the folder)."""
        for pattern in ("", "*/"):
            yield from self.path.glob(f"{pattern}{place_of(batch, None)}")

    def _owner(self) -> str | None:
        file = self.path / "_query"
        return (file.read_text() or None) if file.exists() else None

    def _name(self, query: str) -> str:
        return f"{self.kind} {query}"

    def _others(self) -> Iterator[str]:
        for path in self.path.iterdir():
            if path.name == "_delta_log" or path.name[0] not in "._":
                yield path.name

    def error(self, reason: str) -> UsageError:
        """Return the error of this folder with that reason."""
        return UsageError(f"sink {self.kind}: folder {self.path}: {reason}")


def place_of(batch: int, partition: int | None) -> str:
    """Return the name of a file; ``partition`` None: a pattern for those of all partitions."""
    return f"batch-{batch:06d}-{'*' if partition is None else f'{partition:05d}'}.parquet"


def batch_of(place: str) -> int:
    """Return the micro-batch that a file is of."""
    return int(place.rpartition("batch-")[2].partition("-")[0])
