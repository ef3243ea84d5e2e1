"""Nexmark whole over generated events, up to 5 s late: DuckDB's answers, also of a run that is restored half way."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest

from oop_engine import Page, scan, sql
from oop_engine.core.graphs.graph import Stream
from oop_engine.query import DataStream
from oop_engine.runners.dispatch import Result
from oop_engine.runners.inline import Inline
from tests.parts.query.duck import answers, same_rows
from tests.parts.query.nexmark import MORE, QUERIES
from tests.parts.query.nexmark_data import START, events, of_duckdb, shuffled


@cache
def tables() -> dict[str, pa.Table]:
    return events(2_000)


@cache
def late() -> dict[str, pa.Table]:
    return {name: shuffled(table, 5) for name, table in tables().items()}


def query(name: str) -> DataStream:
    given = {of: scan(table, of).event_time("date_time", "5 s") for of, table in late().items()}
    return sql(QUERIES[name], **given)


def restored(of: DataStream) -> pa.Table:
    """Return the results of a run that goes on, half way, as another one from its snapshot."""
    found: list[pa.RecordBatch] = []

    def take(result: Result) -> None:
        if isinstance(result.message, Page):
            found.append(result.message.batch)

    graph = of.graph
    schemas = graph.plan()
    runner = Inline(graph, take)
    sources = [name for name in late() if name in graph.nodes]
    for half in (0, 1):
        for name in sources:
            table, schema = late()[name], schemas.schema(Stream(name))
            middle = table.num_rows // 2
            rows = table.slice(middle) if half else table.slice(0, middle)
            for batch in rows.select(schema.names).to_batches(max_chunksize=500):
                runner.push(name, Page.from_arrow(schema, batch))
        runner.drain()
        if not half:
            saved = runner.snapshot()
            runner = Inline(graph, take)
            runner.restore(saved)
    for name in sources:
        runner.end(name)
    runner.drain()
    return pa.Table.from_batches(found)


@pytest.mark.slow(keep=8)
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_has_the_answers_of_duckdb(name: str) -> None:
    made, wanted = query(name), answers(of_duckdb(name), tables())
    assert same_rows(made.run().table, wanted)
    table = restored(made)
    at = made.finish.rows(table)
    assert same_rows(table.take(at).select(made.finish.shown(table.column_names)), wanted)


@pytest.mark.parametrize("name", MORE)
def test_a_query_that_the_suite_lacks_has_the_answers_of_duckdb(name: str) -> None:
    keys = range(0, 100, 3)
    moments = pa.array([int(START) + key for key in keys], pa.timestamp("us"))
    side = pa.table(
        {"date_time": moments, "key": pa.array(keys, pa.int64()), "value": [f"v{key}" for key in keys]}
    )
    given = {**late(), "side": side}
    ours, theirs = MORE[name]
    query = sql(ours, **{of: scan(table, of).event_time("date_time", "5 s") for of, table in given.items()})
    wanted = answers(theirs, {**tables(), "side": side})
    assert wanted
    assert same_rows(query.run().table, wanted)
