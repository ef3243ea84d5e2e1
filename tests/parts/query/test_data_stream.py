"""Queries in words: the same graphs as by hand, equal steps once, mistakes at their line."""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import EngineError, Graph, GraphError, UsageError, replay, scan, sql, stream
from oop_engine.operators import BoundedDisorder, Count, Max, Punctuate, Sum, Tumbling, WindowAggregate
from oop_engine.query import as_graph
from oop_engine.rewrites import in_order
from oop_engine.sinks import Gathered
from oop_engine.sources import FileTail
from oop_engine.triggers import AfterCount

LOG = stream("log", {"ts": "int64", "host": "string", "bytes": "int64"}).event_time("ts", "5 s", unit="s")
ADS = stream("ads", {"ts": "int64", "ad": "string"}).event_time("ts", "5 s", unit="s")
CLICKS = stream("clicks", {"ts": "int64", "ad": "string", "by": "string"}).event_time("ts", "5 s", unit="s")
ROWS = [{"ts": ts, "host": "ab"[ts % 2], "bytes": ts} for ts in (1, 3, 6, 11, 8, 14)]
AD_ROWS = [{"ts": 1, "ad": "x"}, {"ts": 2, "ad": "y"}]
CLICK_ROWS = [{"ts": 5, "ad": "x", "by": "u"}, {"ts": 50, "ad": "y", "by": "v"}]


def test_a_query_is_the_graph_that_is_built_by_hand() -> None:
    query = LOG.group_by("host").window("10 s").agg(n=Count(), bytes=Sum("bytes"))
    graph = Graph("query")
    source = graph.source("log", LOG.schema)
    edge = graph.add("event-time", Punctuate(BoundedDisorder("5 s")), source)
    aggregates = {"n": Count(), "bytes": Sum("bytes")}
    graph.sink("result", graph.add("agg", WindowAggregate(Tumbling("10 s"), aggregates, ("host",)), edge))
    assert query.graph.text() == graph.text()
    assert query.run(ROWS).table.equals(replay(graph, {"log": ROWS}).results["result"])


def test_equal_steps_are_one_node() -> None:
    old = LOG.filter("ts < 10")
    again = LOG.filter("ts < 10")
    made = as_graph({"a": old.group_by("host").agg(n=Count()), "b": again.select("host"), "late": LOG.late})
    assert [name for name in made.nodes if name.startswith("filter")] == ["filter"]
    assert [name for name in made.nodes if name.startswith("event")] == ["event-time"]


def test_late_records_are_a_stream() -> None:
    found = as_graph({"all": LOG, "late": LOG.late})
    outcome = replay(
        found, {"log": [{"ts": 20, "host": "a", "bytes": 1}, {"ts": 3, "host": "b", "bytes": 2}]}
    )
    assert [row["ts"] for row in outcome.rows("late")] == [3]
    with pytest.raises(GraphError, match="right behind event_time"):
        _ = LOG.filter("ts > 3").late


def test_late_records_are_read_where_nothing_reads_those_in_time() -> None:
    rows = [
        {"ts": 20, "host": "a", "bytes": 1},
        {"ts": 3, "host": "b", "bytes": 2},
        {"ts": 4, "host": "b", "bytes": 5},
    ]
    late = (
        stream("log", {"ts": "int64", "host": "string", "bytes": "int64"})
        .event_time("ts", "2 s", unit="s")
        .late
    )
    assert late.filter("bytes > 2").run(rows, check=True).table["ts"].to_pylist() == [4]
    assert late.group_by("host").window("10 s").agg(n=Count()).run(rows, check=True).table[
        "n"
    ].to_pylist() == [2]


def test_names_are_those_that_are_given() -> None:
    made = (
        LOG.named("edge")
        .filter("ts > 1")
        .named("newer")
        .group_by("host")
        .agg(n=Count())
        .named("counts")
        .graph
    )
    assert list(made.nodes) == ["log", "edge", "newer", "counts", "result"]
    with pytest.raises(UsageError, match="two steps are called 'x'"):
        _ = LOG.filter("ts > 1").named("x").select("host").named("x").graph


@pytest.mark.parametrize(
    ("how", "rows"),
    [
        ("inner", [(1, "x", 5, "u")]),
        ("left", [(1, "x", 5, "u"), (2, "y", None, None)]),
        ("right", [(1, "x", 5, "u"), (None, "y", 50, "v")]),
        ("full", [(1, "x", 5, "u"), (2, "y", None, None), (None, "y", 50, "v")]),
        ("semi", [(1, "x")]),
        ("anti", [(2, "y")]),
    ],
)
def test_a_join_has_one_key_column(how: Any, rows: list[tuple[Any, ...]]) -> None:
    joined = ADS.join(CLICKS, on="ad", within=("0 s", "10 s"), how=how)
    wanted = ["ts", "ad"] if how in ("semi", "anti") else ["ts", "ad", "ts_right", "by"]
    table = joined.run(ads=AD_ROWS, clicks=CLICK_ROWS).table.select(wanted)
    assert sorted((tuple(row.values()) for row in table.to_pylist()), key=repr) == sorted(rows, key=repr)


def test_a_length_is_either_way() -> None:
    joined = CLICKS.join(ADS, on="ad", within="4 s")
    assert joined.run(ads=AD_ROWS, clicks=CLICK_ROWS).table.column("ad").to_pylist() == ["x"]


def test_as_of_takes_the_latest() -> None:
    joined = CLICKS.join_asof(ADS, on="ad", how="left")
    rows = joined.run(ads=[*AD_ROWS, {"ts": 4, "ad": "x"}], clicks=CLICK_ROWS).table.to_pylist()
    assert [(row["ad"], row["ts_right"]) for row in rows] == [("x", 4), ("y", 2)]


def test_a_union_matches_columns_by_name() -> None:
    other = stream("other", {"bytes": "int64", "host": "string", "ts": "int64"}).event_time(
        "ts", "5 s", unit="s"
    )
    rows = LOG.union(other).run(log=ROWS[:1], other=ROWS[1:2]).table.to_pylist()
    assert sorted(row["ts"] for row in rows) == [1, 3]


def test_columns() -> None:
    assert LOG.select("host", twice="bytes * 2").columns == ["ts", "host", "twice"]
    assert LOG.with_columns(kb="bytes / 1024").columns == [*LOG.columns, "kb"]
    assert LOG.rename({"host": "name"}).columns == ["ts", "name", "bytes"]
    assert LOG.distinct("host").columns == ["ts", "host"]
    assert LOG.window(Tumbling("10 s")).group_by("host").agg(n=Count()).columns[0] == "host"
    assert LOG.window("10 s", every="5 s").agg(n=Count()).run(ROWS).table.num_rows == 4


def test_versions_of_results() -> None:
    early = LOG.group_by("host").window("10 s").emit(early=AfterCount(1)).agg(n=Count())
    assert early.schema.change == "change"
    assert early.run(ROWS).final("result").num_rows == 4


def test_disorder_is_measured_where_it_is_not_given(caplog: pytest.LogCaptureFixture) -> None:
    outcome = scan(ROWS, "log").event_time("ts", unit="s").group_by("host").agg(n=Count()).run()
    assert (
        "source 'log': records come up to 3 s out of order; used: event_time('ts', disorder='3 s')"
        in caplog.text
    )
    assert outcome.late.total == 0
    by_host = scan(ROWS, "log").event_time("ts", per="host", unit="s")
    assert "within each host" in str(by_host.explain()) or by_host.run().late.total == 0


def test_a_feed_that_is_read_once_needs_a_disorder() -> None:
    query = stream("log", {"ts": "int64"}).event_time("ts", unit="s")
    with pytest.raises(UsageError, match="can be read only once: give it"):
        query.run(iter([{"ts": 1}]))
    with pytest.raises(UsageError, match="not known yet"):
        _ = query.graph


def test_files(tmp_path: Path) -> None:
    lines = [
        "ts,host,bytes",
        "2026-01-01T00:00:01Z,a,10",
        "2026-01-01T00:00:03Z,b,5",
        "2026-01-01T00:01:02Z,a,7",
    ]
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    paths = tmp_path / "a.csv", tmp_path, tmp_path / "*.csv"
    one, folder, pattern = (scan(path).event_time("ts", "1 h") for path in paths)
    assert scan(tmp_path).event_time("ts").run().late.total == 0
    assert [each.run().table.num_rows for each in (one, folder, pattern)] == [3, 6, 6]
    assert one.schema.type_of("ts") == pa.timestamp("us", "UTC")
    with pytest.raises(UsageError, match="there is no such file"):
        scan(tmp_path / "*.parquet")


def test_text_columns_may_be_times(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "oop_engine")
    query = scan([{"at": "2026-01-01T00:00:01Z"}], "log").event_time("at", "1 s")
    assert query.run().table.column("at").type == pa.timestamp("us", "UTC")
    assert "'at' is text, and read as timestamp[us, tz=UTC]" in caplog.text


@dataclass
class Visit:
    ts: int
    host: str


class Visited(NamedTuple):
    ts: int
    host: str


VISITS: dict[str, Any] = {
    "dictionaries": [{"ts": 1, "host": "a"}, {"ts": 2, "host": "b"}],
    "dataclasses": [Visit(1, "a"), Visit(2, "b")],
    "named tuples": (Visited(1, "a"), Visited(2, "b")),
    "structured array": np.array([(1, "a"), (2, "b")], [("ts", np.int64), ("host", object)]),
    "columns": {"ts": np.array([1, 2]), "host": np.array(["a", "b"], object)},
}


@pytest.mark.parametrize("kind", VISITS)
def test_rows_of_any_kind_are_scanned(kind: str) -> None:
    found = scan(VISITS[kind]).event_time("ts", "5 s", unit="s").run().table.to_pylist()
    assert found == [{"ts": 1, "host": "a"}, {"ts": 2, "host": "b"}]


def test_columns_are_those_of_all_rows() -> None:
    found = scan([{"ts": 1}, {"ts": 2, "v": 5}, {"ts": 3, "w": "x"}]).event_time("ts", "5 s", unit="s").run()
    assert found.table.to_pylist() == [
        {"ts": 1, "v": None, "w": None}, {"ts": 2, "v": 5, "w": None}, {"ts": 3, "v": None, "w": "x"},
    ]  # fmt: skip


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
def test_moments_of_numpy_in_any_unit_are_scanned(unit: str) -> None:
    days = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]").astype(f"datetime64[{unit}]")
    table = scan({"at": days}).event_time("at", "1 d").window("1 d").agg(n=Count()).run().table
    assert [row["window_start"].day for row in table.to_pylist()] == [1, 2]


def test_an_index_of_moments_is_a_column() -> None:
    frame = pd.DataFrame({"v": [1, 2]}, index=pd.to_datetime(["2026-01-01 00:00:05", "2026-01-01 00:01:00"]))
    query = scan(frame).event_time("index", "5 s").window("1 min").agg(v=Sum("v"))
    assert query.run().table["v"].to_pylist() == [1, 2]
    assert scan(frame.reset_index(drop=True)).fields.names == ["v"]
    assert scan(frame.assign(index=3).reset_index(drop=True)).fields.names == ["v", "index"]


def test_a_method_of_another_library_has_its_word_here() -> None:
    for name, words in {"to_pandas": r"run\(\)\.table", "resample": "window", "groupby": "group_by"}.items():
        with pytest.raises(AttributeError, match=f"DataStream has no '{name}': write {words}"):
            getattr(LOG, name)
    assert not hasattr(LOG, "iloc")
    assert copy.copy(LOG).columns == LOG.columns


@pytest.mark.parametrize("data", ["table", "rows", "parquet", "csv", "jsonl", "sql"])
def test_a_date_may_be_the_event_time(data: str, tmp_path: Path) -> None:
    days = [dt.date(2026, 1, day) for day in (1, 2, 3, 2, 5)]
    table = pa.table({"day": days, "n": [1, 2, 4, 8, 16]})
    path = tmp_path / f"days.{data}"
    read: Any = path
    if data in ("parquet", "sql"):
        pq.write_table(table, path := tmp_path / "days.parquet")
        read = path
    elif data == "csv":
        path.write_text("day,n\n" + "".join(f"{row['day']},{row['n']}\n" for row in table.to_pylist()))
    elif data == "jsonl":
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()))
    else:
        read = table if data == "table" else table.to_pylist()
    if data == "sql":
        found = sql(
            f"SELECT window_start, sum(n) AS n FROM TUMBLE('{path}', day, INTERVAL '2 days') GROUP BY ALL"
        )
    else:
        found = scan(read).event_time("day", "1 d").window("2 d").agg(n=Sum("n"))
    rows = [(row["window_start"].date(), row["n"]) for row in found.run().table.to_pylist()]
    assert rows == [(dt.date(2026, 1, 1), 11), (dt.date(2026, 1, 3), 4), (dt.date(2026, 1, 5), 16)]


def test_rows_come_as_they_become_final() -> None:
    query = LOG.group_by("host").window("10 s").agg(n=Count())

    async def feed() -> AsyncIterator[dict[str, Any]]:
        for row in ROWS:
            yield row

    async def all_rows() -> list[int]:
        return [row["n"] async for row in query.rows(feed())]

    async def first_row() -> list[int]:
        async for row in query.rows(ROWS):
            return [row["n"]]
        return []

    assert sorted(asyncio.run(all_rows())) == [1, 1, 2, 2]
    assert asyncio.run(first_row()) == [2]


def test_a_query_is_a_service() -> None:
    found = Gathered()
    query = LOG.group_by("host").window("10 s").agg(n=Count())
    served = asyncio.run(query.serve(ROWS, to=found, signals=False))
    assert served.tuples == {"log": 6}
    assert len(found.rows) == 4


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (LOG.group_by("host").agg(n=Count()), "an aggregate without a window"),
        (ADS.join(CLICKS, on="ad"), "a join without a bound on time"),
    ],
)
def test_state_without_an_end_is_no_service(query: Any, words: str) -> None:
    assert words in query.explain()
    feeds: dict[str, Any] = {name: [] for name in query.graph.nodes if name in ("log", "ads", "clicks")}
    with pytest.raises(UsageError, match=words):
        asyncio.run(query.serve(to=Gathered(), signals=False, **feeds))


def test_the_twin_in_order_has_the_same_results() -> None:
    query = LOG.group_by("host").window("10 s").agg(n=Count())
    twin = replay(in_order(query.graph), {"log": ROWS}).results["result"]
    order = [("window_end", "ascending"), ("host", "ascending")]
    assert twin.sort_by(order).equals(query.run(ROWS).table.sort_by(order))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: stream("log", {"ts": "int64"}).filter("ts > 3"), "log.filter: which column is the event time?"),
        (lambda: stream("log", {"time": "int64"}).event_time("tim", unit="s"), "did you mean time?"),
        (lambda: stream("log", {"ts": "int46"}), "must be a type such as int64"),
        (lambda: LOG.group_by("hots"), "did you mean host?"),
        (lambda: LOG.group_by("host").filter("ts > 3"), "KeyedStream has no 'filter'"),
        (lambda: LOG.group_by("host").window("10 s").ag(n=Count()), "did you mean agg?"),
        (lambda: LOG.window("10 s").agg(), "name each aggregate, as in agg(n=Count(), bytes=Sum('bytes'))"),
        (lambda: LOG.agg(Count()), "; got Count(column=None) without a name"),  # type: ignore[arg-type]
        (lambda: LOG.window("10 s").agg(n="count"), "got 'count': 'count(*)' counts"),
        (lambda: LOG.group_by("host").agg(n="count + 1"), "got 'count + 1': compute behind it"),
        (lambda: scan([{"ts": 1, "v": 1}, {"ts": 2, "v": "x"}]), "scan: column 'v': Could not convert 'x'"),
        (lambda: scan({"ts": [1, "a"]}), ": mend the values, or declare the columns, stream(name, types)"),
        (lambda: scan([{"ts": 1}, (2,)]), "for it names its columns; got (2,): or declare them, stream("),
        (lambda: scan(pd.DataFrame({"v": [1, "x"]})), "scan: column 'v': Could not convert 'x' with type str"),
        (lambda: scan(3), "scan takes a path, a data frame, columns or a list of rows; got int"),
        (lambda: LOG.window("10 s").agg(n=3), "must be an aggregate"),  # type: ignore[arg-type]
        (lambda: LOG.window("10 s").agg(n=Sum("host")), "needs an integer"),
        (lambda: LOG.window(Tumbling("10 s"), every="5 s"), "every is for a length"),
        (lambda: LOG.select("hots"), "did you mean host?"),
        (lambda: LOG.join(CLICKS, on="host", within="5 s"), "no column 'host'"),
        (lambda: LOG.join([1], on="host"), "takes a stream with an event time"),  # type: ignore[arg-type]
        (lambda: LOG.run(), "source 'log' has no feed"),
        (lambda: LOG.run(ROWS, log=ROWS), "a feed without a name"),
        (lambda: LOG.run(lgo=ROWS), "did you mean log?"),
        (lambda: stream("a", {"ts": "int64"}).event_time("ts", "orderd", unit="s"), "did you mean ordered?"),
        (lambda: stream("a", {"ts": "int64"}).event_time("ts", "upstream", per="ts", unit="s"), "needs a disorder"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_at_its_line(make: Callable[[], object], words: str) -> None:
    with pytest.raises(EngineError) as caught:
        make()
    assert words in str(caught.value)


def test_what_is_shown() -> None:
    assert repr(LOG).startswith("DataStream(ts+: int64")
    html = LOG.filter("bytes > 3").group_by("host").window("5 s").agg(n=Count())._repr_html_()
    assert re.findall(r"<td>(.*?)</td>", html)[:2] == ["host", "string"]
    order = [html.index(word) for word in ("source", "BoundedDisorder", "Filter", "WindowAggregate")]
    assert order == sorted(order)
    assert "without event time" in repr(stream("log", {"ts": "int64"}))


def test_top_rows_of_each_window_and_key() -> None:
    counts = LOG.window("5 s").group_by("host").agg(n=Count(), most=Max("bytes"))
    found = counts.top(1, by=["-n", "host"], rank="place").run(ROWS).table
    columns = ("window_end", "host", "n", "place")
    assert [tuple(row[name] for name in columns) for row in found.to_pylist()] == [
        (5, "b", 2, 1),
        (10, "a", 2, 1),
        (15, "a", 1, 1),
    ]
    assert counts.top(1, "-most", per="host").run(ROWS).table.num_rows == counts.run(ROWS).table.num_rows
    with pytest.raises(GraphError, match="top: by"):
        counts.top(1, by="-m")
    whole = counts.top(1, by=["-n", "window_end"], per="host", timed=False).run(ROWS).table
    assert sorted((row["host"], row["window_end"]) for row in whole.to_pylist()) == [("a", 10), ("b", 5)]


def test_the_profile_of_a_source() -> None:
    found = LOG.filter("bytes > 3").profile(ROWS, by="host")
    assert (found.tuples, found.lateness.most, found.by) == (6, 3, ("host",))
    assert found.own_lateness is not None
    assert found.own_lateness.most == 0
    with pytest.raises(UsageError, match="has no feed"):
        LOG.profile()
    with pytest.raises(UsageError, match="of one source"):
        ADS.join(CLICKS, "ad", "5 s").profile()
    with pytest.raises(GraphError, match="profile: by"):
        LOG.profile(ROWS, by="hots")


def test_a_table_without_rows_is_scanned() -> None:
    empty = pa.table({"ts": pa.array([], pa.int64()), "host": pa.array([], pa.string())})
    assert scan(empty).event_time("ts", "5 s", unit="s").run().table.num_rows == 0


def test_a_log_of_csv_is_served_as_it_is_run(tmp_path: Path) -> None:
    """The service of the README: the format of a file is that of its suffix, as in the shell."""
    path = tmp_path / "access.csv"
    path.write_text("ts,host\n2026-03-01T12:00:00Z,a\n2026-03-01T12:01:00Z,b\n2026-03-01T12:09:00Z,a\n")
    columns = {"ts": pa.timestamp("s", "UTC"), "host": pa.string()}
    log = stream("access", columns).event_time("ts", "90 s")
    per_minute = log.group_by("host").window("1 min").agg(n=Count())
    found = Gathered()
    served = asyncio.run(per_minute.serve(access=FileTail(path, follow=False), to=found))
    assert served.tuples == {"access": 3}
    assert found.rows == per_minute.run(access=str(path)).table.to_pylist()
