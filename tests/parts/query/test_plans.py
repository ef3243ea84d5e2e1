"""Plans: what goes below unions and joins, what is shared, and which columns are read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from oop_engine import Page, Schema, UsageError, replay, sql, stream, write_trace
from oop_engine.operators import Avg, Count, Filter, Max, Min, OAJoin, Project, Sum, WindowAggregate
from oop_engine.query import DataStream, as_graph, running
from oop_engine.query.columns_read import columns_read
from oop_engine.query.graph_of import built
from oop_engine.rewrites import in_order
from tests.parts.query.duck import answers, logs, same_rows, streams

TABLES = logs(5)
STREAMS = streams(TABLES)
WINDOW = "FROM TUMBLE(log, ts, INTERVAL '1' MINUTE)"


def kinds(query: DataStream) -> Counter[str]:
    return Counter(type(node.operator).__name__ for node in query.graph.nodes.values() if node.operator)


def test_equal_windows_share_one_operator() -> None:
    """Over one stream, with equal keys, whoever asks; each has its own columns, and the answers of its own."""
    log = STREAMS["log"].filter("bytes > 0")
    by_host = log.group_by("host").window("1 min")
    asked = {
        "a": by_host.agg(n=Count(), most=Max("bytes")),
        "b": by_host.agg(n=Sum("bytes"), most=Max("bytes")),
        "c": by_host.agg(n=Count()),
        "other-keys": log.group_by("kind").window("1 min").agg(n=Count()),
        "other-windows": log.group_by("host").window("2 min").agg(n=Count()),
        "a-name": by_host.agg(least=Min("bytes")).named("least"),
    }
    graph = as_graph(asked)
    found = [node.operator for node in graph.nodes.values() if isinstance(node.operator, WindowAggregate)]
    assert [list(one.aggregates) for one in found] == [["n", "most", "n_2"], ["n"], ["n"], ["least"]]
    results = replay(graph, {"log": TABLES["log"]}).results
    assert all(results[name].equals(one.run().table) for name, one in asked.items())
    twins = replay(in_order(graph), {"log": TABLES["log"]}).results
    assert twins["b"].num_rows == results["b"].num_rows


def test_revision_streams_share_nothing() -> None:
    log = STREAMS["log"].group_by("host").window("1 min").emit()
    graph = as_graph({"n": log.agg(n=Count()), "m": log.agg(m=Max("bytes"))})
    assert sum(isinstance(node.operator, WindowAggregate) for node in graph.nodes.values()) == 2


def test_two_uses_of_a_part_of_a_query_are_one() -> None:
    text = f"""
        WITH a AS (SELECT window_end, count(*) AS n {WINDOW} GROUP BY window_end),
             b AS (SELECT window_end, max(bytes) AS m {WINDOW} GROUP BY window_end)
        SELECT a.window_end, n, m FROM a JOIN b ON a.window_end = b.window_end
    """
    query = sql(text, **STREAMS)
    assert kinds(query)["WindowAggregate"] == 1
    end = "time_bucket(INTERVAL '1 minute', ts) + INTERVAL '1 minute'"
    theirs = f"SELECT {end} AS w, count(*), max(bytes) FROM log GROUP BY w"
    assert same_rows(query.run().table, answers(theirs, TABLES))


def test_a_filter_goes_below_a_union() -> None:
    text = "SELECT id FROM (SELECT * FROM log UNION ALL SELECT * FROM other) WHERE bytes > 3"
    query = sql(text, **STREAMS)
    assert kinds(query)["Filter"] == 2
    assert before(query, "Meld") == {"Filter"}
    assert same_rows(query.run().table, answers(text, TABLES))


def before(query: DataStream, kind: str) -> set[str]:
    """Return the kinds of the operators right before those of ``kind``."""
    nodes = query.graph.nodes
    return {
        type(nodes[one.node].operator).__name__
        for node in nodes.values() if type(node.operator).__name__ == kind for one in node.inputs
    }  # fmt: skip


@pytest.mark.parametrize(
    ("join", "where", "below"),
    [
        ("JOIN", "a.kind = 1 AND b.kind = 2", 2),
        ("JOIN", "a.kind = 1 AND a.bytes > b.bytes", 1),
        ("LEFT JOIN", "a.kind = 1", 1),
        ("LEFT JOIN", "b.kind = 1", 0),
        ("LEFT JOIN", "b.kind IS NULL", 0),
        ("RIGHT JOIN", "a.kind = 1", 0),
        ("FULL JOIN", "b.kind IS NULL AND a.kind = 1", 0),
        ("SEMI JOIN", "a.kind = 1", 1),
        ("ANTI JOIN", "a.kind = 1", 1),
    ],
)
def test_conditions_of_one_side_go_below_a_join(join: str, where: str, below: int) -> None:
    text = f"SELECT a.id FROM log a {join} other b ON a.host = b.host AND a.ts = b.ts WHERE {where}"
    query = sql(text, **STREAMS)
    nodes = query.graph.nodes
    [node] = [one for one in nodes.values() if isinstance(one.operator, OAJoin)]
    assert sum(isinstance(nodes[one.node].operator, Filter) for one in node.inputs) == below
    assert same_rows(query.run().table, answers(text, TABLES))


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
@pytest.mark.parametrize("on", ["a.kind = 1", "b.kind = 2", "a.ok AND b.bytes > 3"])
def test_conditions_in_on_keep_their_meaning(join: str, on: str) -> None:
    text = f"SELECT a.id FROM log a {join} other b ON a.host = b.host AND {on}"
    assert same_rows(sql(text, **STREAMS).run().table, answers(text, TABLES))


def test_a_join_keeps_the_columns_that_are_read() -> None:
    text = "SELECT a.id, b.bytes AS c FROM log a JOIN other b ON a.host = b.host AND a.ts = b.ts"
    made = columns_read(built("query", {"result": sql(text, **STREAMS).output}))
    plan = made.graph.plan()
    [join] = [node for node in plan.nodes if isinstance(node.operator, OAJoin)]
    found = [plan.schema(plan.input(join, side)).names for side in (0, 1)]
    assert found[1] == ["ts", "host", "bytes"]
    assert found[0] == ["ts", "host", "bytes", "id"]  # without it the right one would have another name
    assert "event-time-columns" in sql(text, **STREAMS).explain()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "arrow"])
def test_a_file_is_read_as_far_as_the_query_needs(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"log.{suffix}"
    schema = STREAMS["log"].schema
    table = TABLES["log"].cast(schema.fields)
    write_trace(path, schema, [Page(schema, one) for one in table.to_batches()])
    asked: list[list[str]] = []
    log_columns = schema.names  # of formats that carry punctuation all
    original = running.opened  # type: ignore[attr-defined]

    def noting(feed: Any, of: Schema) -> Any:
        asked.append(of.names)
        return original(feed, of)

    monkeypatch.setattr(running, "opened", noting)
    query = sql(f"SELECT host, count(*) AS n {WINDOW} WHERE ok GROUP BY host, window_end", log=path)
    assert query.run().table.num_rows
    assert asked == [["ts", "host", "ok"] if suffix in ("csv", "parquet") else log_columns]


def test_a_source_that_is_pushed_keeps_its_columns() -> None:
    log = stream("log", {"ts": "int64", "host": "string", "bytes": "int64"}).event_time("ts", "5 s", unit="s")
    query = log.group_by("host").window("10 s").agg(n=Count())
    assert query.run([{"ts": 1, "host": "a", "bytes": 3}]).table.num_rows == 1
    assert query.graph.nodes["log"].schema == log.schema


def test_an_aggregate_of_plain_columns_has_no_step_before_it() -> None:
    text = f"SELECT host, window_start, window_end, count(*) AS n, avg(bytes) AS a {WINDOW} GROUP BY ALL"
    words = STREAMS["log"].group_by("host").window("1 min").agg(n=Count(), a=Avg("bytes"))
    assert list(sql(text, **STREAMS).graph.nodes) == list(words.graph.nodes)
    assert kinds(sql(text, **STREAMS))[Project.__name__] == 0


def test_workers_are_refused_in_a_sentence() -> None:
    with pytest.raises(
        UsageError, match="workers=4: the engine runs in one process, on='spark' on all cores"
    ):
        STREAMS["log"].run(workers=4)


def test_a_table_may_be_read_twice() -> None:
    text = "SELECT a.id FROM log a JOIN log b ON a.id = b.id AND b.bytes > 3"
    assert sorted(node for node in sql(text, **STREAMS).graph.nodes if node.startswith("event-time")) == [
        "event-time"
    ]


def test_equal_arguments_are_one_column() -> None:
    """Of aggregates, of their filters, and of keys."""
    text = (
        "SELECT host, sum(bytes * kind) AS s, max(bytes * kind) AS m, sum(bytes * kind) FILTER (WHERE ok) AS f, "
        "min(bytes * kind) FILTER (WHERE ok) AS g, bytes % 3 AS k, max(bytes % 3) AS h FROM log GROUP BY ALL"
    )
    query = sql(text, **STREAMS)
    [before] = [node.operator for node in query.graph.nodes.values() if node.name == "select"]
    assert isinstance(before, Project)
    assert list(before.columns) == ["ts", "host", "_k1", "_a2", "_a3"]
    assert same_rows(query.run().table, answers(text, TABLES))
    aggregate = STREAMS["log"].group_by("host").window("1 min").agg(s="sum(bytes * 2)", m="max(bytes * 2)")
    [apply] = [node.operator for node in aggregate.graph.nodes.values() if node.name == "with-columns"]
    assert len(getattr(apply, "columns", getattr(apply, "expressions", {}))) == 1
