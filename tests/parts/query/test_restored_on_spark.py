"""Queries on Spark that fail between two micro-batches and go on from their checkpoint: the results of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import Page, run, sql, stream
from oop_engine.core.graphs.graph import Stream
from oop_engine.query import as_graph
from oop_engine.spark.io.sinks import BatchResults, Parquet
from oop_engine.spark.run import run_on_spark
from tests.parts.query.duck import logs, same_rows
from tests.parts.query.nexmark_data import shuffled

pytestmark = pytest.mark.spark

BATCHES, FAILS = 6, 1
TABLES = {name: shuffled(table, 9, time="ts") for name, table in logs(3, rows=80).items()}
TYPES = {field.name: str(field.type) for field in TABLES["log"].schema}
GIVEN = {name: stream(name, TYPES).event_time("ts", "20 s") for name in TABLES}
BAND = "b.ts BETWEEN a.ts - INTERVAL '15' SECOND AND a.ts + INTERVAL '10' SECOND"
TEXTS = {
    "pairs": f"SELECT a.id, b.id AS j FROM log a JOIN other b ON a.host = b.host AND {BAND}",
    "full": f"SELECT a.id, b.id AS j FROM log a FULL JOIN other b ON a.host = b.host AND a.kind = b.kind AND {BAND}",
    "none": f"SELECT a.id FROM log a ANTI JOIN other b ON a.kind = b.kind AND {BAND}",
    "as_of": "SELECT a.id, b.id AS j FROM log a ASOF LEFT JOIN other b ON a.host = b.host AND a.ts >= b.ts",
    "nested": "SELECT a.id, (SELECT max(b.bytes) FROM other b WHERE b.host = a.host AND b.ts BETWEEN a.ts - INTERVAL "
    "'20' SECOND AND a.ts) AS m FROM log a",
    "rows": "SELECT id, md5(host) AS m, strptime('5.1.2026 ' || kind, '%d.%m.%Y %H') AS t, host LIKE '%' || host AS l, "
    "replace(host, host, 'x') AS r FROM log WHERE contains(host, host)",
    "lag": "SELECT id, lag(bytes, 2, 0) OVER (PARTITION BY host ORDER BY ts, id) AS b FROM log",
    "lead": "SELECT id, lead(id) OVER (PARTITION BY host ORDER BY ts, id) AS n, sum(bytes) OVER (PARTITION BY kind "
    "ORDER BY ts RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW) AS s FROM log",
    "joined": "WITH x AS (SELECT host, window_end, count(*) AS n FROM TUMBLE(log, ts, INTERVAL '30' SECOND) GROUP BY "
    "ALL), y AS (SELECT host, window_end, sum(bytes) AS b FROM TUMBLE(other, ts, INTERVAL '30' SECOND) GROUP BY ALL) "
    "SELECT x.host, x.window_end, x.n, y.b FROM x LEFT JOIN y ON x.host = y.host AND x.window_end = y.window_end",
}  # fmt: skip
GRAPH = as_graph({name: sql(text, **GIVEN) for name, text in TEXTS.items()})


class Failing:
    """A sink of Parquet that cannot write one micro-batch."""

    def __init__(self, place: Path) -> None:
        self.sink = Parquet(place)
        self.start, self.worker, self.exactly_once = self.sink.start, self.sink.worker, self.sink.exactly_once
        self.check = self.sink.check

    def commit(self, batch: int, results: BatchResults) -> Mapping[str, int]:
        if batch == FAILS:
            raise OSError("the disk is full")
        return self.sink.commit(batch, results)


def pages(name: str) -> Iterator[Page]:
    """Yield the rows of a source, a page a segment."""
    schema, table = GRAPH.plan().schema(Stream(name)), TABLES[name]
    size = -(-table.num_rows // BATCHES)
    for at in range(0, table.num_rows, size):
        [batch] = table.slice(at, size).select(schema.names).combine_chunks().to_batches()
        yield Page.from_arrow(schema, batch)


def run_in(place: Path, sink: Any) -> None:
    run_on_spark(
        GRAPH, {name: pages(name) for name in TABLES}, master="local[2]", checkpoint=place / "checkpoint", sink=sink,
        segments_per_batch=2, segment_rows=80, quick=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_queries_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    place = tmp_path / "results"
    with pytest.raises(Exception, match="the disk is full"):
        run_in(tmp_path, Failing(place))
    assert [*place.rglob("*.parquet")]
    run_in(tmp_path, Parquet(place))
    here = run(GRAPH, TABLES)
    for name in TEXTS:
        parts = [pq.read_table(path, partitioning=None) for path in (place / name).rglob("*.parquet")]
        wanted = [tuple(row.values()) for row in here.results[name].to_pylist()]
        assert len(wanted) > 3
        assert same_rows(pa.concat_tables(parts).select(here.results[name].column_names), wanted), name
