"""Doors and forms: the same rows give the same results through every door, in whatever form they are given."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import UserDict, namedtuple
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import make_dataclass
from datetime import UTC, date, datetime
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from oop_engine import (
    Change,
    ContractError,
    EngineError,
    Graph,
    GroupWise,
    Linear,
    Local,
    Page,
    Schema,
    UsageError,
    arun,
    open_trace,
    replay,
    run,
    serve,
)
from oop_engine.core.operator import Operator
from oop_engine.core.values.arrow_data import is_arrow
from oop_engine.lab import Scenario, Variant, compare
from oop_engine.lab.brute_force.true_answer import true_answer
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate
from oop_engine.outcomes import BadRow
from oop_engine.runners.event_loop import run_async
from oop_engine.runners.feeds.forms import RING, Intake
from oop_engine.runners.inline import Inline
from oop_engine.sinks import Gathered
from oop_engine.sources import Journal, Pushed
from oop_engine.spark.io.spool import spool
from oop_engine.spark.run import run_on_spark
from oop_engine.testing import Driver, GraphDriver, multiset

SCHEMA = Schema({"ts": pa.int64(), "host": pa.string(), "ms": pa.float64()}, "ts", "s")
ROWS: list[dict[str, Any]] = [
    {"ts": 1, "host": "a", "ms": 0.5},
    {"ts": 2, "host": None, "ms": 1.5},
    {"ts": 1, "host": "c", "ms": None},
]
Tuple, Other = namedtuple("Tuple", SCHEMA.names), namedtuple("Other", ["more", *reversed(SCHEMA.names)])
Data = make_dataclass("Data", SCHEMA.names)
TABLE = pa.Table.from_pylist(ROWS, SCHEMA.fields)
COLUMNS = TABLE.to_pydict()


def database() -> sqlite3.Cursor:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.row_factory = sqlite3.Row
    rows = "union all select 2, null, 1.5 union all select 1, 'c', null"
    return connection.execute(f"select 1 ts, 'a' host, 0.5 ms {rows}")


def mixed() -> list[Any]:
    return [ROWS[:1], Linear(0), TABLE.slice(1, 1), {"punctuation": {"below": 1}}, Data(**ROWS[2])]


FORMS: dict[str, Callable[[], Any]] = {
    "page": lambda: Page.of(SCHEMA, COLUMNS),
    "pages": lambda: [Page.of(SCHEMA, COLUMNS).slice(at, at + 1) for at in range(3)],
    "table": lambda: TABLE,
    "table with more": lambda: TABLE.append_column("more", [[1, 2, 3]]),
    "batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "reader": lambda: TABLE.to_reader(max_chunksize=2),
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas with an index": lambda: pd.DataFrame(COLUMNS).set_index("ts"),
    "columns": lambda: COLUMNS,
    "columns of arrays": lambda: {
        "ms": pa.array(COLUMNS["ms"]),
        "host": pd.Series(COLUMNS["host"]),
        "ts": np.array([1, 2, 1]),
    },
    "dictionaries": lambda: ROWS,
    "dictionaries in another order": lambda: [dict(reversed(row.items())) for row in ROWS],
    "dictionaries without nulls": lambda: [{k: v for k, v in row.items() if v is not None} for row in ROWS],
    "dictionaries with more": lambda: [row | {"more": 1} for row in ROWS],
    "mappings": lambda: [UserDict(row) for row in ROWS],
    "tuple of dictionaries": lambda: tuple(ROWS),
    "iterator": lambda: iter(ROWS),
    "generator": lambda: (row for row in ROWS),
    "batches": lambda: [ROWS[:2], [], iter(ROWS[2:])],
    "dataclasses": lambda: [Data(**row) for row in ROWS],
    "named tuples": lambda: [Tuple(**row) for row in ROWS],
    "other named tuples": lambda: [Other(*[1, *reversed(row.values())]) for row in ROWS],
    "tuples": lambda: [tuple(row.values()) for row in ROWS],
    "lists": lambda: [list(row.values()) for row in ROWS],
    "rows of a database": database,
    "mixed": mixed,
}
if find_spec("polars"):
    FORMS["polars"] = lambda: import_module("polars").DataFrame(COLUMNS)


def passing() -> Graph:
    graph = Graph("g")
    graph.sink("out", graph.source("in", SCHEMA))
    return graph


async def asynchronous(feed: Any) -> AsyncIterator[Any]:
    for item in [feed] if isinstance(feed, dict) or is_arrow(feed) else feed:
        yield item


def pushed(push: Callable[[Inline, Any], None]) -> list[Any]:
    found: list[Any] = []
    runner = Inline(passing(), lambda result: found.append(result.message))
    push(runner, None)
    runner.end("in")
    runner.drain()
    return [row for page in found if isinstance(page, Page) for row in page.to_pylist()]


def through_local(feed: Any) -> list[Any]:
    found: list[Any] = []

    async def main() -> None:
        async with Local(passing(), lambda result: found.append(result.message)) as local:
            await local.push("in", feed)

    run_async(main())
    return [row for page in found if isinstance(page, Page) for row in page.to_pylist()]


def served(feed: Any) -> list[Any]:
    sink = Gathered()
    run_async(serve(passing(), {"in": feed}, {"out": sink}, signals=False))
    return sink.rows


def journaled(feed: Any, folder: Path) -> list[Any]:
    """Return the rows of the life in which they come, which are those of the next one, out of the journal."""
    journal = mkdtemp(dir=folder.parent)
    found = served(Journal(feed, journal))
    assert served(Journal([], journal)) == found
    return found


def pushed_into_a_service(feed: Any) -> list[Any]:
    sink, source = Gathered(), Pushed()

    async def main() -> None:
        service = asyncio.create_task(serve(passing(), {"in": source}, {"out": sink}))
        async for item in asynchronous([feed] if isinstance(feed, int) else feed):
            await source.push(item)
        source.end()
        await service

    run_async(main())
    return sink.rows


def through_graph_driver(feed: Any) -> list[Any]:
    driver = GraphDriver(passing())
    driver.feed("in", feed)
    return driver.rows("out")


def through_driver(feed: Any) -> list[Any]:
    driver = Driver(Operator(), SCHEMA)
    driver.feed(0, feed)
    return driver.rows()


def spooled(feed: Any, folder: Path) -> list[Any]:
    found = spool({"in": feed}, {"in": SCHEMA}, folder)["in"]
    messages = [message for number in range(found.count()) for message in found.read(number)]
    return [row for page in messages if isinstance(page, Page) for row in page.to_pylist()]


DOORS: dict[str, Callable[[Any, Path], list[Any]]] = {
    "run": lambda feed, _: run(passing(), {"in": feed}).results["out"].to_pylist(),
    "replay, local": lambda feed, _: replay(passing(), {"in": feed}, on="local").results["out"].to_pylist(),
    "arun": lambda feed, _: asyncio.run(arun(passing(), {"in": feed})).results["out"].to_pylist(),
    "arun, asynchronous": lambda feed, _: (
        asyncio.run(arun(passing(), {"in": asynchronous(feed)})).results["out"].to_pylist()
    ),
    "serve": lambda feed, _: served(feed),
    "serve, asynchronous": lambda feed, _: served(asynchronous(feed)),
    "serve, journal": journaled,
    "serve, pushed": lambda feed, _: pushed_into_a_service(feed),
    "Local.push": lambda feed, _: through_local(feed),
    "Inline.push": lambda feed, _: pushed(lambda runner, _: runner.push("in", feed)),
    "GraphDriver": lambda feed, _: through_graph_driver(feed),
    "Driver": lambda feed, _: through_driver(feed),
    "Spark": spooled,
    "brute force": lambda feed, _: true_answer(passing(), {"in": feed}).to_pylist(),
}


@pytest.mark.parametrize("door", DOORS)
def test_the_same_rows_come_through_every_door_in_every_form(door: str, tmp_path: Path) -> None:
    for number, (form, made) in enumerate(FORMS.items()):
        assert DOORS[door](made(), tmp_path / str(number)) == ROWS, form


def used_again(row: Any, change: Callable[[Any, int], None]) -> Iterator[Any]:
    for number in range(5):
        change(row, number)
        yield row


def set_all(row: Any, number: int) -> None:
    for name, value in (("ts", number), ("host", f"h{number}"), ("ms", None)):
        setattr(row, name, value)


AGAIN: dict[str, Callable[[], Iterator[Any]]] = {
    "a dictionary": lambda: used_again({}, lambda row, n: row.update(ts=n, host=f"h{n}")),
    "a mapping": lambda: used_again(UserDict(), lambda row, n: row.update(ts=n, host=f"h{n}")),
    "a list": lambda: used_again([0, "", None], lambda row, n: row.__setitem__(slice(2), [n, f"h{n}"])),
    "a dataclass": lambda: used_again(Data(0, "", None), set_all),
    "a list of a dictionary": lambda: used_again([{}], lambda rows, n: rows[0].update(ts=n, host=f"h{n}")),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_row_that_is_used_again_is_what_it_was_when_it_came(door: str, tmp_path: Path) -> None:
    wanted = [{"ts": n, "host": f"h{n}", "ms": None} for n in range(5)]
    for number, (form, made) in enumerate(AGAIN.items()):
        assert DOORS[door](made(), tmp_path / str(number)) == wanted, form


@pytest.mark.parametrize("form", [list, iter, asynchronous], ids=["list", "generator", "asynchronous"])
def test_a_change_in_a_feed_of_a_service_is_one(form: Callable[[Any], Any]) -> None:
    graph, sink = Graph("g"), Gathered()
    edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("in", SCHEMA))
    windows = WindowAggregate({"ten": Tumbling(10)}, {"n": Count()}, changing=True)
    graph.sink("out", graph.add("count", windows, edge))
    change = Change(1, at=100, add={"twenty": Tumbling(20)}, drop=("ten",), operator="count")
    rows = [{"ts": ts, "host": "a", "ms": None} for ts in range(140)]
    feed = [*rows[:60], change, *rows[60:]]
    run_async(serve(graph, {"in": form(feed)}, {"out": sink}))
    assert multiset(sink.rows) == multiset(run(graph, {"in": feed}).table.to_pylist())
    assert {row["n"] for row in sink.rows} == {10, 20}


def test_a_list_within_a_row_is_what_it_was_when_the_row_came() -> None:
    schema = Schema({"ts": pa.int64(), "tags": pa.list_(pa.int64())}, "ts", "s")
    graph, tags, sink = Graph("g"), list[int](), Gathered()
    graph.sink("out", graph.source("in", schema))
    makes: list[Callable[[int], Any]] = [lambda n: {"ts": n, "tags": tags}, lambda n: (n, tags)]
    for make in makes:

        def rows(make: Callable[[int], Any] = make) -> Iterator[Any]:
            for number in range(3):
                tags[:] = range(number)
                yield make(number)

        run_async(serve(graph, {"in": rows()}, {"out": sink}))
        found = run(graph, {"in": rows()}).results["out"].to_pylist()
        assert [row["tags"] for row in found] == [row["tags"] for row in sink.rows] == [[], [0], [0, 1]]
        sink.rows.clear()


@pytest.mark.parametrize(
    "form", ["dictionaries", "dataclasses", "named tuples", "tuples", "rows of a database"]
)
def test_rows_that_are_pushed_one_by_one_may_be_of_every_kind(form: str) -> None:
    def push(runner: Inline, _: Any) -> None:
        for row in FORMS[form]():
            runner.push_row("in", row)

    assert pushed(push) == ROWS


EMPTY: dict[str, Callable[[], Any]] = {
    "list": list,
    "generator": lambda: iter(()),
    "no columns": dict,
    "columns": lambda: {name: [] for name in SCHEMA.names},
    "table": SCHEMA.fields.empty_table,
    "table without columns": lambda: pa.table({}),
    "frame": pd.DataFrame,
    "frame with columns": lambda: pd.DataFrame(columns=SCHEMA.names),
    "lists": lambda: [[], ()],
}


@pytest.mark.parametrize("door", DOORS)
def test_nothing_is_no_row_and_no_error(door: str, tmp_path: Path) -> None:
    for number, (form, made) in enumerate(EMPTY.items()):
        if form == "no columns" and door.endswith("asynchronous"):
            continue  # one thing of a generator: a row without its time
        assert DOORS[door](made(), tmp_path / str(number)) == [], form


BAD: dict[str, tuple[Any, str]] = {
    "no time": ([*ROWS, {"ts": None, "host": "d"}], "row 4: ts is null"),
    "nothing in a row": ([*ROWS, {}], "row 4: ts is null"),
    "time left out": ([*ROWS, {"host": "d"}], "row 4: ts is null"),
    "fraction": ([*ROWS, {"ts": 1.5, "host": "d"}], "row 4: .*1.5"),
    "text": ([*ROWS, (3, "d", "x")], "row 4: .*'x'"),
    "misspelt": ([*ROWS, {"ts": 3, "hots": "d"}], "row 4: there is no column 'hots'; did you mean host"),
    "few values": ([*ROWS, (3, "d")], r"row 4: must have 3 values \(ts, host, ms\); got 2"),
    "no row": ([*ROWS, 5], r"row 4: .*takes a Page, .*; got 5 \(int\)"),
    "no punctuation": ([*ROWS, {"punctuation": {"belo": 3}}], "row 4: a punctuation must read like"),
    "null in a table": (pa.table(COLUMNS | {"ts": pa.array([1, None, 2])}), "row 2: ts is null"),
    "null in a frame": (pd.DataFrame(COLUMNS | {"ts": [1, 2, None]}), "row 3: ts is null"),
    "cell of a frame": (pd.DataFrame(COLUMNS | {"host": ["a", 7, "b"]}), "row 2: .*host.*7"),
    "NA of pandas in a frame": (pd.DataFrame(COLUMNS | {"ts": pd.array([1, 2, None], "Int64")}), "row 3: ts is null"),
    "NA of pandas in a row": ([*ROWS, {"ts": pd.NA, "host": "d"}], "row 4: ts is null"),
    "null in columns": (COLUMNS | {"ts": [None, 2, 3]}, "row 1: ts is null"),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_a_bad_row_is_refused_with_its_number_or_is_a_dead_letter(door: str, tmp_path: Path) -> None:
    for number, (what, (feed, words)) in enumerate(BAD.items()):
        if door.startswith("serve"):
            assert len(DOORS[door](feed, tmp_path)) == (3 if isinstance(feed, list) else 2), what
            continue
        with pytest.raises(ContractError, match=words):
            DOORS[door](feed, tmp_path / str(number))


@pytest.mark.parametrize("what", BAD)
def test_bad_rows_are_counted_or_handed_over_where_that_is_chosen(what: str) -> None:
    feed, words = BAD[what]
    bad: list[BadRow] = []
    for outcome in (
        run(passing(), {"in": feed}, bad_rows="count"),
        replay(passing(), {"in": feed}, on="local", bad_rows=bad.append),
        asyncio.run(arun(passing(), {"in": asynchronous(feed)}, bad_rows="count")),
    ):
        [(reason, count)] = outcome.refused["in"].items()
        assert (count, outcome.results["out"].num_rows) == (1, 3 if isinstance(feed, list) else 2)
        assert "refused: 1\n    1 of in: " in str(outcome)
    assert [(row.source, row.reason) for row in bad] == [("in", reason)]
    assert words.startswith(f"row {bad[0].position}: ")


def test_bad_rows_of_a_trace_are_counted_unless_they_are_to_be_errors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"ts": 1}\n{"ts": "x"}\n{"ts": "x"}\nno\n')
    bad: list[BadRow] = []
    for chosen in (None, "count", bad.append):
        outcome = run(passing(), {"in": open_trace(path, SCHEMA)}, bad_rows=chosen)
        assert outcome.refused == {"in": {"ts: cannot read 'x' as int64": 2, "the line is no JSON object": 1}}
        assert outcome.results["out"].num_rows == 1
    assert sorted(row.reason for row in bad) == [
        *["the line is no JSON object"],
        *["ts: cannot read 'x' as int64"] * 2,
    ]
    assert caplog.text.count("is left out") == 1
    assert "source 'in': row 4 of the trace is left out: the line is no JSON object" in caplog.text
    with pytest.raises(ContractError, match=r"source 'in': row 4: the line is no JSON object"):
        run(passing(), {"in": [open_trace(path, SCHEMA)]}, bad_rows="refuse")
    with pytest.raises(
        UsageError, match="bad_rows must be 'refuse', 'count' or a function of a BadRow; got 'drop'"
    ):
        run(passing(), {"in": []}, bad_rows="drop")  # type: ignore[call-overload]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("feed", "words"),
    [
        (5, r"takes a Page, punctuation, .*, or an iterable of these; got 5 \(int\)"),
        (
            pa.table({"ts": [1], "hots": ["a"], "ms": [0.5]}),
            "there must be a column 'host'; .*did you mean hots",
        ),
        ({"ts": [1], "hots": ["a"], "ms": [0.5]}, "there must be a column 'host'; .*did you mean hots"),
        ({"ts": [1, 2], "host": ["a"], "ms": [0.5, 1]}, "the same number of rows; got ts 2, host 1, ms 2"),
        ({"ts": [1], "host": "a", "ms": [0.5]}, "column 'host' must be a list or an array, .*got 'a'"),
    ],
)
def test_what_has_no_form_is_refused_with_all_that_have(
    door: str, feed: Any, words: str, tmp_path: Path
) -> None:
    if "asynchronous" in door and feed == 5:
        return
    if "serve" in door and (feed != 5 or "pushed" in door):
        assert DOORS[door](feed, tmp_path) == []
        return
    words = "must be a LiveSource or an iterable of rows; got int" if "serve" in door else words
    with pytest.raises(EngineError, match=words):
        DOORS[door](feed, tmp_path)


TWICE = pd.DataFrame([[1, "a", "b", 0.5]], columns=["ts", "host", "host", "ms"])
MOMENTS = pd.Series([datetime(2024, 1, 1, 5), None, datetime(2024, 1, 1, 5, tzinfo=UTC)], dtype=object)


@pytest.mark.parametrize("door", [door for door in DOORS if "serve" not in door])
def test_cells_of_a_frame_are_the_values_that_they_were(door: str, tmp_path: Path) -> None:
    """Arrow makes two days of a day and a moment, and moments without a zone of those that have one."""
    for number, feed in enumerate((TWICE, pa.table(list(TWICE.to_numpy().T), TWICE.columns.tolist()))):
        with pytest.raises(
            ContractError, match="there must be one column 'host'; got 2: rename or drop the others"
        ):
            DOORS[door](feed, tmp_path / f"twice {number}")
    frame = pd.DataFrame({"ts": [1, True], "host": ["a", None]})
    with pytest.raises(ContractError, match=r"row 2: 'ts' must be int64; got True \(bool\)"):
        DOORS[door](frame.assign(ms=1.0), tmp_path / "booleans")


@pytest.mark.parametrize(
    ("kind", "cells", "row"),
    [
        (pa.date32(), [date(2024, 1, 1), datetime(2024, 1, 1, 5)], 2),
        (pa.timestamp("us"), MOMENTS, 3),
        (pa.timestamp("us", "UTC"), MOMENTS, 1),
        (pa.timestamp("us"), [pd.Timestamp(2024, 1, 1), pd.Timestamp("2024-01-01 00:00:00.000000001")], 2),
        (pa.float64(), [0.5, True], 2),
        (pa.int64(), [1, np.True_], 2),
        (pa.int64(), [1, 2**63], 2),
        (pa.int64(), [1, "2", 3.0, None], None),
    ],
    ids=str,
)
def test_columns_of_objects_follow_the_rule_of_lists(kind: pa.DataType, cells: Any, row: int | None) -> None:
    schema = Schema({"ts": pa.int64(), "x": kind}, "ts", "s")
    frame = pd.DataFrame({"ts": range(len(cells)), "x": pd.Series(cells, dtype=object)})
    for feed in (
        frame,
        frame.set_index("ts"),
        {name: frame[name].tolist() for name in frame},
        frame.to_dict("records"),
    ):
        intake = Intake("here", schema)
        if row is None:
            [page] = intake.messages(feed)
            assert isinstance(page, Page)
            assert page.column("x").to_pylist() == [1, 2, 3, None]
            continue
        with pytest.raises(ContractError, match=f"here: row {row}: 'x' must be {re.escape(str(kind))}; got"):
            list(intake.messages(feed))
    if row is not None:
        with pytest.raises(ContractError, match="page: 'x' must be"):
            Page.from_arrow(schema, frame)


def test_rows_go_in_together_and_never_pass_punctuation() -> None:
    intake = Intake("here", SCHEMA)
    many = (ROWS[at % 3] if at != 2 * RING else Linear(0) for at in range(3 * RING))
    assert [len(m) if isinstance(m, Page) else m for m in intake.messages(many)] == [
        RING,
        RING,
        Linear(0),
        RING - 1,
    ]


async def test_rows_of_a_live_feed_go_in_when_it_has_nothing_more() -> None:
    seen: list[int] = []
    more = asyncio.Event()

    async def feed() -> AsyncIterator[Any]:
        yield ROWS[0]
        yield ROWS[1:]
        await more.wait()
        yield ROWS[0]

    def note(rows: int) -> None:
        seen.append(rows)
        more.set()

    outcome = await asyncio.wait_for(arun(passing(), {"in": feed()}, on_tuples=note), 60)
    assert (seen, outcome.tuples) == ([3, 1], 4)


def test_a_generator_is_read_no_further_than_needed() -> None:
    def feed() -> Iterator[Any]:
        for at in range(10 * RING):
            read.append(at)
            yield {"ts": at}

    read: list[int] = []
    stop = RuntimeError("enough")

    def take(result: Any) -> None:
        raise stop

    with pytest.raises(Exception, match="enough"):
        run(passing(), {"in": feed()}, on_result=take)
    assert len(read) <= 2 * RING


ANSWER = [{"window_start": 0, "window_end": 10, "host": host, "n": 1} for host in ("a", None, "c")]


@pytest.mark.parametrize("truth", [ANSWER, pd.DataFrame(ANSWER), pa.Table.from_pylist(ANSWER)], ids=type)
@pytest.mark.parametrize("form", ["dictionaries", "columns", "pandas", "dataclasses"])
def test_a_scenario_takes_feeds_and_truth_in_every_form(form: str, truth: Any) -> None:
    graph = Graph("g")
    edge = graph.add("edge", Punctuate(BoundedDisorder(9)), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}, by=("host",)), edge))
    [run_of] = compare(
        Scenario(
            "s", "s", "s", lambda _: {"in": FORMS[form]()}, lambda _: [Variant("plan", "out", graph)],
            ("window_end", "host"), lambda _: truth,
        )
    ).runs  # fmt: skip
    assert (run_of.held_to, run_of.results, run_of.off) == ("truth", 3, 0)


@pytest.mark.spark
def test_spark_takes_rows_in_every_form(spark: Any) -> None:
    graph = Graph("g")
    edge = graph.add("edge", Punctuate(BoundedDisorder(9)), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("count", WindowAggregate(Tumbling(10), {"n": Count()}, by=("host",)), edge))
    for feed in (ROWS, COLUMNS, pd.DataFrame(COLUMNS), (Data(**row) for row in ROWS)):
        with_bad = [feed, {"ts": None}]
        outcome = run(graph, {"in": with_bad}, on="spark", spark=spark, batch=True, bad_rows="count")
        assert multiset(outcome.results["out"].to_pylist()) == multiset(ANSWER)
        assert outcome.refused == {"in": {"ts is null": 1}}
        assert str(outcome).startswith("SparkOutcome: 3 rows in ")


def test_options_are_written_out_and_those_of_another_runner_are_refused() -> None:
    by_name = signature(run).parameters
    for other in (replay, run_on_spark):
        for name, option in signature(other).parameters.items():
            if name != "on":
                assert by_name[name].default == option.default, name
    with pytest.raises(
        UsageError, match=r"batch is an option of on='spark'; got batch=True with on='inline'"
    ):
        run(passing(), {"in": []}, batch=True)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"speed is an option of on='inline' or 'local'; got speed=1.0"):
        run(passing(), {"in": []}, on="spark", speed=1.0)  # type: ignore[call-overload]


def test_an_outcome_is_a_short_table_and_names_its_sinks() -> None:
    outcome = run(passing(), {"in": ROWS * 2_000})
    assert str(outcome).splitlines()[0].startswith("Outcome: 6,000 rows in ")
    assert "  out          6,000  ts, host, ms" in str(outcome)
    assert len(repr(outcome)) < 3_000
    for found in (outcome.results, outcome.emitted, outcome.waited_s):
        with pytest.raises(KeyError, match="there is no sink 'per-minute'; the sinks are 'out'"):
            found["per-minute"]
    with pytest.raises(EngineError, match="did you mean out"):
        outcome.final("ut")


def test_pieces_of_a_service_are_never_a_row_together() -> None:
    assert served(asynchronous([*ROWS, 5, "a", 0.5, (7, "b", 0.5)])) == [
        *ROWS,
        {"ts": 7, "host": "b", "ms": 0.5},
    ]
    assert served(asynchronous([5, "a", 0.5])) == []


def test_groups_of_a_punctuation_may_be_rows_and_frames() -> None:
    expected = GroupWise.of({"host": ["a", "b"]}, [5, 7])
    frame = pd.DataFrame({"host": ["a", "b"]})
    for groups in (
        [{"host": "a"}, {"host": "b"}],
        frame,
        pa.table({"host": ["a", "b"]}),
        {"host": frame["host"]},
    ):
        assert GroupWise.of(groups, np.array([5, 7])) == expected
    for groups in ([{"host": "a"}, {"hots": "b"}], [1, 2], 5):
        with pytest.raises(ContractError, match="group-wise punctuation: keys must be lists"):
            GroupWise.of(groups, [5, 7])


def test_rows_come_back_in_one_form_from_every_sink() -> None:
    schema = Schema({"ts": pa.timestamp("ns", "UTC"), "d": pa.duration("ns"), "far": pa.timestamp("s")}, "ts")
    graph, pages = Graph("g"), list[Page]()
    graph.sink("out", graph.source("in", schema))
    feed = {
        "ts": pa.array([1], schema.type_of("ts")),
        "d": pa.array([3], pa.duration("ns")),
        "far": pa.array([2**40]),
    }
    feed["far"] = feed["far"].cast(pa.timestamp("s"))
    sink, driver = Gathered(), GraphDriver(graph)
    run_async(serve(graph, {"in": feed}, {"out": sink}, signals=False))
    run_async(serve(graph, {"in": feed}, {"out": pages.append}, signals=False))
    driver.feed("in", feed)
    expected = run(graph, {"in": feed}).rows("out")
    assert len(expected) == 1
    assert sink.rows == driver.rows("out") == [row for page in pages for row in page.to_pylist()] == expected


def test_refused_rows_of_a_trace_are_dead_letters_of_a_service(tmp_path: Path) -> None:
    path, dead = tmp_path / "a.jsonl", Gathered()
    path.write_text('{"ts": 1}\n{"ts": "x"}\nno\n')
    trace = open_trace(path, SCHEMA)
    done = run_async(serve(passing(), {"in": trace}, {"out": Gathered()}, dead_letters=dead, signals=False))
    assert done.unreadable == {"in": {"ts: cannot read 'x' as int64": 1, "the line is no JSON object": 1}}
    assert (done.tuples, len(dead.rows)) == ({"in": 1}, 2)
