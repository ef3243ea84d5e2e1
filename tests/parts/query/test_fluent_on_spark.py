"""Queries by methods on Spark: the rows that they have embedded; many queries are one graph, whose start costs once."""

from __future__ import annotations

from typing import Any

import pytest

from oop_engine import run, stream
from oop_engine.operators import Session, Sliding
from oop_engine.operators.windows import Windows
from oop_engine.query import DataStream, as_graph
from oop_engine.windows import Delimited, Landmark, LastRows, PartitionedTupleBased, RowsBetween, TupleBased
from tests.parts.query.duck import logs, same_rows

pytestmark = pytest.mark.spark

TABLES = logs(3)
TYPES = {
    name: str(kind) for name, kind in zip(TABLES["log"].schema.names, TABLES["log"].schema.types, strict=True)
}
LOG, OTHER = (stream(name, TYPES).event_time("ts", "10 min") for name in TABLES)
AGGREGATES = {
    "n": "count(*)", "bytes": "sum(bytes)", "middle": "median(x)", "hosts": "string_agg(host ORDER BY ts, host)",
}  # fmt: skip


def windowed(windows: Windows | str) -> DataStream:
    return LOG.group_by("kind").window(windows).agg(**AGGREGATES)


def ordered(windows: Windows) -> DataStream:
    return LOG.window(windows).agg(n="count(*)", bytes="sum(bytes)")


QUERIES = {
    "tumbling": windowed("1 min"),
    "sliding": windowed(Sliding("1 min", "20 s")),
    "session": windowed(Session("10 s")),
    "landmark": windowed(Landmark("1 min", "10 s")),
    "delimited": windowed(Delimited("ok")),
    "last": windowed(LastRows(5, "20 s")),
    "rows": ordered(TupleBased(10, 5, order="time")),
    "rows_of_key": windowed(PartitionedTupleBased(5, 2, order="time")),
    "between": windowed(RowsBetween(-1, 2, carry=("id",), tie=("id",))),
    "whole": LOG.group_by("host").agg(n="count(*)"),
    "pairs": LOG.join(OTHER, on="host", within="10 s", where="bytes > bytes_right").select("id", "id_right"),
    "full": LOG.join(OTHER, on=["host", "kind"], within=("0 s", "15 s"), how="full").select("id", "id_right"),
    "none": LOG.join(OTHER, on="kind", within=("0 s", "3 s"), how="anti").select("id"),
    "as_of": LOG.join_asof(OTHER, on="host", within="10 s", how="left").select("id", "ts_right"),
    "distinct": LOG.select("host").distinct(),
    "top": LOG.group_by("host").window("1 min").agg(n="count(*)").top(2, by=["-n", "host"], rank="place"),
    "both": LOG.select("id", "host").union(OTHER.select("id", "host")).filter("host IS NULL"),
    "computed": LOG.select(
        "id", hash="md5(host)", day="make_date(2026, 1, id % 20 + 1)", at="strptime('5.1.2026 ' || kind, '%d.%m.%Y %H')"
    ),
}  # fmt: skip


def rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.slow
def test_queries_by_methods_have_the_same_results_on_spark(spark: Any) -> None:
    graph = as_graph(QUERIES)
    here, there = (run(graph, TABLES, **how) for how in ({}, {"on": "spark", "spark": spark}))
    for name in QUERIES:
        assert here.results[name].num_rows > 3
        assert same_rows(here.results[name], rows(there.results[name])), name
