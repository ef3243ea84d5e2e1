"""The traces: made from a seed, in Parquet files in order of arrival, a folder a source."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oop_engine import Schema

__all__ = ["BASE", "SECOND", "Measurements", "Trace"]

SECOND = 1_000_000
BASE = 1_600_000_000 * SECOND


@dataclass(frozen=True)
class Measurements:
    """Tuples of ``span`` seconds over two sources, each delayed by at most ``cap`` seconds."""

    rows: int = 5_000_000
    keys: int = 10_000
    span: int = 100
    delay: float = 0.2
    cap: float = 2.0
    file_rows: int = 100_000
    seed: int = 1

    schema = Schema({"ts": pa.timestamp("us", "UTC"), "key": pa.int64(), "val": pa.float64()}, "ts")
    sources = ("a", "b")

    def at(self, folder: Path) -> Trace:
        """Return the trace in ``folder``, written there unless it is there already."""
        trace = Trace(folder, self)
        mark = folder / "trace.json"
        if not mark.exists() or json.loads(mark.read_text()) != asdict(self):
            self._write(trace)
            mark.write_text(json.dumps(asdict(self)))
        return trace

    def _write(self, trace: Trace) -> None:
        rng = np.random.default_rng(self.seed)
        for which, source in enumerate(self.sources):
            table = self._table(rng)
            folder = trace.path(source)
            folder.mkdir(parents=True, exist_ok=True)
            for number, start in enumerate(range(0, len(table), self.file_rows)):
                path = folder / f"{number:04d}.parquet"
                pq.write_table(table.slice(start, self.file_rows), path, compression="snappy")
                age = number * len(self.sources) + which
                os.utime(path, (age, age))  # Spark takes files by their age
            (folder / "_SUCCESS").touch()

    def _table(self, rng: np.random.Generator) -> pa.Table:
        rows = self.rows // len(self.sources)
        at = np.sort(rng.uniform(0, self.span, rows))
        arrival = at + np.minimum(rng.exponential(self.delay, rows), self.cap)
        ts = BASE + (at[np.argsort(arrival, kind="stable")] * SECOND).astype(np.int64)
        key = rng.integers(0, self.keys, rows)
        val = np.round(rng.normal(100, 10, rows), 3)
        return pa.table(
            [pa.array(ts, self.schema.fields.field("ts").type), key, val], schema=self.schema.fields
        )


@dataclass(frozen=True)
class Trace:
    """A folder with the files of each source."""

    folder: Path
    made: Measurements

    def path(self, source: str) -> Path:
        """Return the folder of a source."""
        return self.folder / source

    def table(self) -> pa.Table:
        """Return all tuples."""
        return pa.concat_tables(self.source(source) for source in self.made.sources)

    def source(self, source: str) -> pa.Table:
        """Return the tuples of one source."""
        return pq.read_table(self.path(source))
