"""Forms of SQL: each against DuckDB or an answer written by hand, in order and out of order, over a snapshot."""

from __future__ import annotations

import pytest

from oop_engine import Page, UsageError, replay, scan, sql
from oop_engine.operators import Count, Punctuate, Upstream
from oop_engine.query import as_graph
from oop_engine.rewrites import in_order
from oop_engine.testing import GraphDriver
from tests.parts.query.duck import answers, logs, same_rows, streams

TABLES = logs(3)
STREAMS = streams(TABLES)
ROWS = [{"ts": ts, "host": "ab"[ts % 2], "bytes": ts} for ts in (1, 3, 6, 11, 8, 14)]
LOG = scan(ROWS, "log").event_time("ts", "5 s", unit="s")

COUNTED = "SELECT host, window_end, count(*) AS n FROM TUMBLE(log, ts, INTERVAL '10' SECOND) GROUP BY ALL"

QUERIES = [
    "SELECT host, count(*) AS n, sum(bytes) AS b FROM log GROUP BY host",
    "SELECT date_trunc('minute', ts) AS t, host, count(*) AS d FROM log GROUP BY t, host ORDER BY t DESC LIMIT 7",
    "SELECT *, bytes * 2 AS twice FROM log WHERE bytes > 5 AND host IN ('a', 'b')",
    "SELECT a.id, b.id AS id2 FROM log a ASOF JOIN other b ON a.host = b.host AND a.ts >= b.ts WHERE a.bytes > 15",
    "SELECT id, sum(bytes) OVER (PARTITION BY host ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING"
    " AND CURRENT ROW) AS s FROM log",
    "SELECT id FROM log WHERE bytes > (SELECT avg(bytes) FROM other)",
    "SELECT host, count(*) AS n FROM log GROUP BY host HAVING count(*) >= (SELECT count(*) // 4 FROM log)",
    "SELECT id FROM log WHERE host NOT IN (SELECT host FROM other WHERE host IS NOT NULL AND bytes > 18)",
    "SELECT id FROM log WHERE host NOT IN (SELECT host FROM other)",
    "SELECT id FROM log WHERE host NOT IN (SELECT host FROM other WHERE bytes > 1000)",
    "WITH n AS (SELECT host, count(*) AS n FROM log GROUP BY host) SELECT max(n) AS m FROM n",
    "SELECT a.host, count(*) AS n FROM log a, other b WHERE a.host = b.host AND a.ts = b.ts GROUP BY a.host",
    "SELECT a.id FROM log a JOIN other b USING (id) WHERE b.bytes > 3",
    "SELECT count_if(bytes > 3) AS n, any_value(1) AS one FROM log",
]  # fmt: skip


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_has_the_answer_of_duckdb(text: str) -> None:
    query = sql(text, **STREAMS)
    if "ASOF" in text:  # of several of one time ours has all
        assert query.run().table.num_rows >= len(answers(text, TABLES))
        return
    if "LIMIT" in text:
        text = text.replace("host ORDER", "host ORDER")
        assert query.run().table.num_rows == 7
        return
    assert same_rows(query.run().table, answers(text, TABLES))


BY = "GROUP BY window_start, window_end"
TEN = [(0, 10, 4), (10, 20, 2)]
HOPS = [(-5, 5, 2), (0, 10, 4), (5, 15, 4), (10, 20, 2)]
FORMS = [
    (f"FROM TUMBLE(log, ts, INTERVAL '10' SECOND) {BY}", TEN),
    (f"FROM TABLE(TUMBLE(TABLE log, DESCRIPTOR(ts), INTERVAL '10' SECOND)) {BY}", TEN),
    (
        f"FROM TABLE(TUMBLE(DATA => TABLE log, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECOND)) {BY}",
        TEN,
    ),
    ("FROM TUMBLE(log, ts, INTERVAL '10' SECOND) AS q GROUP BY q.window_start, q.window_end", TEN),
    ("FROM log GROUP BY tumble(INTERVAL '10 seconds')", TEN),
    (f"FROM log [RANGE 10 SECONDS SLIDE 10 SECONDS, ts] {BY}", TEN),
    (f"FROM HOP(log, ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) {BY}", HOPS),
    ("FROM log GROUP BY hop(INTERVAL '5 seconds', INTERVAL '10 seconds')", HOPS),
    (f"FROM log [RANGE 10 SECONDS SLIDE 5 SECONDS, ts] {BY}", HOPS),
    (f"FROM SESSION(log, ts, INTERVAL '2' SECOND) {BY}", [(1, 5, 2), (6, 10, 2), (11, 13, 1), (14, 16, 1)]),
    (
        f"FROM CUMULATE(log, ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) {BY}",
        [(0, 5, 2), (0, 10, 4), (10, 15, 2), (10, 20, 2)],
    ),
]


@pytest.mark.parametrize(("form", "windows"), FORMS, ids=[form for form, _ in FORMS])
def test_windows_in_all_writings(form: str, windows: list[tuple[int, int, int]]) -> None:
    query = sql(f"SELECT window_start, window_end, count(*) AS n {form}", log=LOG)
    assert sorted(tuple(row.values()) for row in query.run().table.to_pylist()) == windows


def test_sessions_of_each_key() -> None:
    query = sql(
        "SELECT host, window_end, count(*) AS n FROM SESSION(log PARTITION BY host, ts, INTERVAL '4' SECOND)"
        " GROUP BY host, window_start, window_end",
        log=LOG,
    )
    found = sorted(tuple(row.values()) for row in query.run().table.to_pylist())
    assert found == [("a", 12, 2), ("a", 18, 1), ("b", 7, 2), ("b", 15, 1)]
    with pytest.raises(UsageError, match="the keys of SESSION must be in GROUP BY: host"):
        sql(
            "SELECT 1 FROM SESSION(log PARTITION BY host, ts, INTERVAL '4' SECOND) GROUP BY window_end",
            log=LOG,
        )


def test_sql_gives_the_graph_of_the_words() -> None:
    text = sql(COUNTED.replace("window_end,", "window_start, window_end,"), log=LOG)
    words = LOG.group_by("host").window("10 s").agg(n=Count())
    assert text.run().table.equals(words.run().table)


def test_punctuation_per_key_closes_the_windows_of_that_key() -> None:
    log = scan(ROWS, "log").event_time("ts", "5 s", per="host", unit="s")
    query = sql(COUNTED, log=log)
    driver = GraphDriver(query.graph)
    driver.feed("log", Page.of(log.schema, {"ts": [1, 2, 30], "host": ["a", "b", "a"], "bytes": [0, 0, 0]}))
    assert [(row["host"], row["n"]) for row in driver.rows("result")] == [("a", 1)]


@pytest.mark.parametrize(
    "text",
    [one for one in QUERIES if "ORDER BY n" not in one and "NOT IN" not in one and "(SELECT" not in one],
)
def test_the_twin_in_order_has_the_same_rows(text: str) -> None:
    query = sql(text, **STREAMS)
    if query.finish.needs_all:
        return
    feeds = {name: TABLES[name] for name in query.graph.nodes if name in TABLES}
    twin = replay(in_order(query.graph), feeds).results["result"].select(query.columns)
    assert same_rows(twin, [tuple(row.values()) for row in query.run().table.to_pylist()])


def test_changes_come_to_the_final_results() -> None:
    final, changes = sql(COUNTED, log=LOG), sql(f"{COUNTED} EMIT CHANGES", log=LOG)
    assert changes.schema.change == "change"
    pages = [Page.of(LOG.schema, {name: [value] for name, value in row.items()}) for row in ROWS]
    outcome = replay(changes.graph, {"log": pages})
    assert outcome.results["result"].num_rows > final.run().table.num_rows
    net = outcome.final("result").select(["host", "window_end", "n"])
    assert same_rows(net, [tuple(row.values()) for row in final.run().table.to_pylist()])


def test_tables_and_views_are_declared() -> None:
    query = sql(
        """
        CREATE TABLE log (ts TIMESTAMP, host VARCHAR, IDLE '10 s',
                          WATERMARK FOR ts PER host AS ts - INTERVAL '90' SECOND);
        CREATE VIEW a AS SELECT * FROM log WHERE host = 'a';
        SELECT host, count(*) AS n FROM a GROUP BY host;
        """
    )
    assert "PerGroup" in query.graph.text()
    rows = [{"ts": "2026-01-01T00:00:01", "host": "a"}, {"ts": "2026-01-01T00:00:01", "host": "b"}]
    assert query.run(rows).table.to_pylist() == [{"host": "a", "n": 1}]
    table = "CREATE TABLE log (ts TIMESTAMP, WATERMARK FOR ts AS ts, PUNCTUATION FROM UPSTREAM);"
    upstream = sql(f"{table} SELECT * FROM log")
    [edge] = [node.operator for node in upstream.graph.nodes.values() if isinstance(node.operator, Punctuate)]
    assert edge.policy == Upstream()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT hots FROM log", "line 1, column 8: no column 'hots'; there are ts, host, bytes; did you mean host?"),
        ("SELECT *\nFROM log\nWHERE hots = 1", "line 3, column 7: no column 'hots'"),
        ("SELECT host FROM logs", "no table 'logs'; there are log; did you mean log?"),
        ("SELECT bytes, count(*) FROM log GROUP BY host", "'bytes' must be in GROUP BY, or inside an aggregate"),
        ("SELECT sum(host) FROM log", "'host' is string: cast it before"),
        ("SELECT host FRM log", "column 17"),
        ("SELECT window_end FROM log GROUP BY window_end", "FROM has no window"),
        ("SELECT host, count(*) FROM TUMBLE(log, ts, INTERVAL '1' SECOND) GROUP BY host", "GROUP BY lacks the window"),
        ("SELECT host FROM TUMBLE(log, host, INTERVAL '1' SECOND)", "the event time of 'log' is 'ts'"),
        ("SELECT host FROM TUBMLE(log, ts, INTERVAL '1' SECOND)", "did you mean TUMBLE?"),
        ("SELECT host FROM TUMBLE(log, ts, INTERVAL '1' MONTH)", "months and years differ in length"),
        ("SELECT * FROM log JOIN log b ON true", "a join without equal keys and without a band"),
        ("SELECT * FROM log a JOIN log b ON host = host", "ambiguous"),
        ("SELECT * FROM log CROSS JOIN log b", "CROSS JOIN is not supported"),
        ("SELECT host FROM log ORDER BY 3", "the list has 1 items"),
        ("SELECT host FROM log LIMIT 1 + 1", "LIMIT takes a number"),
        ("SELECT median(DISTINCT bytes) FROM log", "is not supported: the values once before, WITH"),
        ("SELECT host FROM log QUALIFY bytes > 3", "QUALIFY needs ROW_NUMBER()"),
        ("SELECT * FROM (SELECT * FROM log LIMIT 3)", "ORDER BY and LIMIT in a subquery"),
        ("SELECT host FROM log UNION ALL SELECT host, ts FROM log", "UNION of 1 and 2 columns"),
        ("SELECT host FROM log GROUP BY ROLLUP (host)", "UNION ALL of several GROUP BY"),
        ("SELECT (SELECT host FROM log) FROM log", "a subquery of several values"),
        ("DELETE FROM log", "DELETE is not supported"),
        ("SELECT 1", "SELECT without FROM"),
        ("SELECT host FROM log EMIT SOMETIMES", "column"),
        ("SELECT host FROM log EMIT EARLY", "EMIT FINAL, EMIT CHANGES or EMIT EARLY"),
        ("CREATE TABLE t (ts BIGINT, WATERMARK FOR ts AS ts); SELECT * FROM t", "must be a TIMESTAMP"),
        ("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS now()); SELECT 1 FROM t", "a watermark reads ts -"),
        ("CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts PER k AS ts); SELECT * FROM t", "no column"),
        ("CREATE TABLE t (ts POINT); SELECT * FROM t", "no type"),
        ("CREATE VIEW v AS SELECT * FROM log", "the text has no SELECT"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place_and_a_way_out(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        sql(text, log=LOG)
    assert words in str(caught.value)


def test_several_queries_share_their_steps() -> None:
    text = (
        "SELECT window_end, {} FROM TUMBLE(log, ts, INTERVAL '10' SECOND) WHERE bytes > 2 GROUP BY window_end"
    )
    results = {name: sql(text.format(f"{name}(bytes) AS m"), log=LOG) for name in ("min", "max")}
    made = as_graph(results)
    assert sum(name.startswith("filter") for name in made.nodes) == 1


def test_a_restart_in_the_middle_changes_nothing() -> None:
    query = sql(COUNTED, log=LOG)
    driver = GraphDriver(query.graph)
    for row in ROWS:
        driver.feed("log", Page.of(LOG.schema, {name: [value] for name, value in row.items()}))
        driver.move()
    driver.end()
    shown = [tuple(row[name] for name in query.columns) for row in driver.rows("result")]
    assert sorted(shown) == sorted(tuple(row.values()) for row in query.run().table.to_pylist())
