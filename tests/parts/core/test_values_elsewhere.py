"""Values that are in no column: lengths, moments, bounds, arrivals, units of files; and types that are made wider."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from oop_engine import (
    ContractError,
    EngineError,
    Graph,
    GraphError,
    GroupWise,
    Linear,
    Page,
    Schema,
    open_trace,
    replay,
    write_trace,
)
from oop_engine.aggregates import CountDistinct, First, Mode
from oop_engine.core.units import to_units
from oop_engine.core.values.arrays import converted
from oop_engine.errors import TraceError, UnitError
from oop_engine.operators import Max, Min, Session, Sum, Tumbling, WindowAggregate
from oop_engine.testing import END, Driver

SECONDS = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
MILLIS = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "ms")


@pytest.mark.parametrize(
    ("length", "unit", "units"),
    [
        ("1 minute", "s", 60), ("1m", "s", 60), ("1 Hour", "s", 3600), ("2 hrs", "s", 7200), ("1D", "s", 86_400),
        ("1 day", "s", 86_400), ("5min", "s", 300), ("5 minutes", "ms", 300_000), ("90 sec", "s", 90),
        ("500 millis", "ms", 500), ("2 \u00b5s", "ns", 2000), ("1h30m", "s", 5400), ("1 hour 30 min", "s", 5400),
        ("-1h30m", "s", -5400), ("2 weeks", "s", 1_209_600), ("PT1M", "s", 60), ("PT1M30.5S", "ms", 90_500),
        ("P1DT2H", "s", 93_600), ("-PT1H", "s", -3600), ("INTERVAL '5' MINUTES", "s", 300),
        ("interval '1 hour'", "s", 3600), ("00:01:30", "s", 90), ("1 days 00:01:30", "s", 86_490), ("5 m", "m", 5),
        (np.timedelta64(60_000_000_000, "ns"), "us", 60_000_000), (np.timedelta64(1, "D"), "s", 86_400),
        (np.timedelta64(90, "m"), "s", 5400), (np.timedelta64(25, "s") * 1, "ms", 25_000),
        (pd.Timedelta(1500, "ns"), "ns", 1500), (pd.Timedelta("1 min"), "s", 60), (np.int32(5), "rows", 5),
        *[(length, "s", None) for length in ("1 month", "1M", "P1M", "1y", "1h1h", "a", "P", "-1 days 00:00:01")],
        (np.timedelta64(1, "M"), "s", None), (np.timedelta64(5), "s", None), (np.timedelta64("NaT", "s"), "s", None),
        (pd.Timedelta(1500, "ns"), "us", None), (np.timedelta64(5, "s"), "rows", None), (pd.NaT, "s", None),
        (np.bool_(True), "s", None), (np.datetime64(5, "s"), "s", None), ("1 minute", "rows", None),
    ],
    ids=repr,
)  # fmt: skip
def test_a_length_is_the_one_that_is_written_or_refused(length: Any, unit: str, units: int | None) -> None:
    if units is not None:
        assert to_units(length, unit) == units
        return
    with pytest.raises(UnitError, match="range must "):
        to_units(length, unit, "range")


def test_a_hexadecimal_text_is_no_number() -> None:  # Arrow reads 0xFF as -1 into eight bits
    for kind in (pa.int8(), pa.int64(), pa.uint64(), pa.float64()):
        values, bad = converted(pa.array(["0xFF", "5", None, " 0X1", "-0x1", " 7"]), kind)
        assert values.to_pylist() == [None, 5, None, None, None, 7]
        assert bad is not None
        assert bad.to_pylist() == [True, False, False, True, True, False]


@pytest.mark.parametrize("kind", [">i8", ">i4", ">u2", ">f8", ">f4", ">M8[s]"])
@pytest.mark.parametrize("rows", [3, 100_000])  # also more than are copied by Arrow
@pytest.mark.parametrize("fixed", [False, True])
def test_bytes_in_the_other_order_are_the_same_numbers(kind: str, rows: int, fixed: bool) -> None:
    numbers = (np.arange(rows) % 60_000).astype(kind)
    numbers.flags.writeable = not fixed
    moment = numbers.dtype.kind == "M"
    schema = Schema({"ts": pa.timestamp("s") if moment else pa.int64()}, "ts", "s")
    page = Page.of(schema, {"ts": numbers})
    assert page.times.tolist() == numbers.astype(np.int64).tolist()
    assert page.times[2] == 2


def test_arrays_that_are_used_again_change_no_arrival_and_no_bound() -> None:
    given = np.array([3, 4])
    page = Page.of(Schema({"ts": pa.int64()}, "ts", "s"), {"ts": given}, given)
    bound = GroupWise(pa.record_batch({"k": [1, 2]}), given)
    given[:] = 9
    assert page.arrival is not None
    assert (page.times.tolist(), page.arrival.tolist(), bound.below.tolist()) == ([3, 4], [3, 4], [3, 4])


def test_texts_beside_those_with_an_x_are_numbers() -> None:  # a slice has the bytes of all rows
    texts = pa.array(["x", "5"])
    for rows, wanted in ((texts[1:], [5]), (texts[:0], [])):
        assert converted(rows, pa.int64())[1] is None
        assert (
            Page.of(Schema({"ts": pa.int64()}, "ts", "s"), {"ts": rows}).batch.column(0).to_pylist() == wanted
        )


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("seconds", "'s'"),
        ("Sec", "'s'"),
        ("millis", "'ms'"),
        ("micros", "'us'"),
        ("hours", "by 3,600 .*'s'"),
        ("min", "'s'"),
    ],
)
def test_a_word_for_a_time_is_no_unit_of_a_schema(unit: str, words: str) -> None:
    with pytest.raises(GraphError, match=f"'{unit}'.*{words}"):
        Schema({"ts": pa.int64()}, "ts", unit)


def test_other_words_are_units_of_their_own() -> None:
    for unit in ("rows", "m", "bytes", "km"):
        assert Schema({"ts": pa.int64()}, "ts", unit).length(f"5 {unit}", "range") == 5


PARIS = ZoneInfo("Europe/Paris")
LOCAL, ZONED = pa.timestamp("us"), pa.timestamp("us", "Europe/Paris")


@pytest.mark.parametrize(
    ("kind", "moment", "number"),
    [
        (LOCAL, datetime(1970, 1, 1, 0, 1), 60_000_000), (LOCAL, np.datetime64(1, "m"), 60_000_000),
        (LOCAL, pd.Timestamp("1970-01-01 00:01"), 60_000_000), (LOCAL, date(1970, 1, 2), 86_400_000_000),
        (ZONED, datetime(1970, 1, 1, 1, 1, tzinfo=PARIS), 60_000_000), (ZONED, datetime(1970, 1, 1, tzinfo=UTC), 0),
        (ZONED, pd.Timestamp(1000, tz="UTC"), 1), (pa.timestamp("ns"), pd.Timestamp(1), 1),
        (LOCAL, datetime(1970, 1, 1, tzinfo=UTC), None), (ZONED, datetime(1970, 1, 1), None),
        (ZONED, np.datetime64(1, "s"), None), (LOCAL, pd.Timestamp(1), None), (LOCAL, np.datetime64("NaT", "s"), None),
        (pa.int64(), datetime(1970, 1, 1), None), (pa.int64(), np.datetime64(1, "s"), None),
    ],
    ids=repr,
)  # fmt: skip
def test_a_moment_is_the_one_that_is_written_or_refused(
    kind: pa.DataType, moment: Any, number: int | None
) -> None:
    schema = Schema({"at": kind}, "at", "" if pa.types.is_timestamp(kind) else "us")
    if number is not None:
        assert schema.instant(moment, "origin") == number
        return
    with pytest.raises(GraphError, match=r"origin must be .*got"):
        schema.instant(moment, "origin")


@pytest.mark.parametrize(
    "below",
    [np.timedelta64(5, "s"), np.datetime64(5, "s"), datetime(1970, 1, 1), 1.5, True, 2**63, "5"],
    ids=repr,
)
def test_a_bound_is_an_integer(below: Any) -> None:
    graph = Graph("g")
    graph.sink("out", graph.source("in", SECONDS))
    with pytest.raises(ContractError, match="bound"):
        replay(graph, {"in": [Linear(below)]})
    with pytest.raises(ContractError, match="bounds int64"):
        GroupWise.of({"k": ["a"]}, [below])


@pytest.mark.parametrize(
    "keys",
    [[1.5, True], [datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)], [time(5, tzinfo=UTC)]],
    ids=repr,
)
def test_keys_of_punctuation_have_one_type(keys: list[Any]) -> None:
    with pytest.raises(ContractError, match="one type"):
        GroupWise.of({"k": keys}, [1] * len(keys))


def test_arrivals_that_are_times_come_in_the_unit_of_the_schema() -> None:
    came = np.array([1_500, 2_500], "M8[ms]")
    page = Page.of(SECONDS, {"ts": [1, 2], "k": ["a", "b"]}, came)
    assert page.arrival is not None
    assert page.arrival.tolist() == [1, 2]
    table = pa.table({"ts": [1], "k": ["a"], "came": pa.array([3_000_000_000], pa.timestamp("ns"))})
    page = Page.from_arrow(SECONDS, table, arrival="came")
    assert page.arrival is not None
    assert page.arrival.tolist() == [3]
    rows = Schema({"ts": pa.int64()}, "ts", "rows")
    for schema, wrong in ((rows, came[:1]), (SECONDS.select(["ts"]), np.array(["NaT"], "M8[s]"))):
        with pytest.raises(ContractError, match="arrivals must be"):
            Page.of(schema, {"ts": [1]}, wrong)


def test_an_interval_of_parquet_is_one_or_is_refused_with_the_call_that_converts_it(tmp_path: Path) -> None:
    path, kind = tmp_path / "a.parquet", pa.month_day_nano_interval()
    spans = "[interval '14 months 3 days 2 milliseconds', null, interval '5 days']"
    duckdb.sql(f"copy (select unnest([1, 2, 3]) as ts, unnest({spans}) as x) to '{path}'")
    whole = Schema({"ts": pa.int64(), "x": kind}, "ts", "s")
    [page] = open_trace(path, whole).pages()
    assert page.column("x").to_pylist() == [
        pa.MonthDayNano([14, 3, 2_000_000]),
        None,
        pa.MonthDayNano([0, 5, 0]),
    ]
    assert open_trace(path, time="ts", unit="s").schema.type_of("x") == kind
    way_out = r"'x' must be duration\[us\]; got month_day_nano_interval: .*convert it: pa.array\("
    with pytest.raises(TraceError, match=way_out):
        open_trace(path, Schema({"ts": pa.int64(), "x": pa.duration("us")}, "ts", "s"))
    for suffix in ("parquet", "csv", "jsonl"):
        with pytest.raises(TraceError, match=f"{suffix}: column 'x': .*: use arrow, msgpack$"):
            write_trace(tmp_path / f"b.{suffix}", whole, [page])
    write_trace(tmp_path / "b.arrow", whole, [page])
    assert [each.column("x") for each in open_trace(tmp_path / "b.arrow", whole).pages()] == [
        page.column("x")
    ]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "msgpack"])
def test_a_file_in_another_unit_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    write_trace(path, MILLIS, [Page.of(MILLIS, {"ts": [1000], "k": ["a"]})])
    with pytest.raises(TraceError, match="'ts' must be in 's'; got 'ms'"):
        open_trace(path, SECONDS)
    assert open_trace(path, MILLIS).schema == MILLIS


def test_a_table_in_another_unit_is_refused() -> None:
    marks = {"oop_engine.time": "ts", "oop_engine.unit": "ms"}
    table = pa.table({"ts": [1000], "k": ["a"]}).replace_schema_metadata(marks)
    graph = Graph("g")
    graph.sink("out", graph.source("in", SECONDS))
    for door in (lambda: Page.from_arrow(SECONDS, table), lambda: replay(graph, {"in": table})):
        with pytest.raises(ContractError, match="'ts' must be in 's'; got 'ms'"):
            door()
    assert Page.from_arrow(MILLIS, table).times.tolist() == [1000]


KEYS = [[f"{chunk}-{i}" for i in range(100)] for chunk in range(3)]
SMALL = pa.dictionary(pa.int8(), pa.string())


def nested(texts: list[str], kind: pa.DataType) -> pa.Array:
    column = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), texts)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(pa.array(range(101), pa.int32()), column)
    return pa.StructArray.from_arrays([column], ["a"]) if pa.types.is_struct(kind) else column


@pytest.mark.parametrize("kind", [SMALL, pa.list_(SMALL), pa.struct([("a", SMALL)])], ids=str)
@pytest.mark.parametrize("windows", [Tumbling(10), Session(5)], ids=repr)
def test_pages_may_bring_more_categories_than_their_index_counts(kind: pa.DataType, windows: Any) -> None:
    schema = Schema({"ts": pa.int64(), "k": kind}, "ts", "s")
    driver = Driver(WindowAggregate(windows, {"n": CountDistinct("ts")}, by=("k",)), schema)
    for texts in KEYS:
        driver.feed(0, Page.of(schema, {"ts": [1] * 100, "k": nested(texts, kind)}))
        driver.move()
    driver.feed(0, END)
    assert len({str(row["k"]) for row in driver.rows()}) == 300


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "kind", [pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(5, 2), pa.decimal256(60, 2)], ids=str
)
def test_decimals_of_every_width_are_aggregated_or_refused_with_the_graph(kind: pa.DataType) -> None:
    schema = Schema({"ts": pa.int64(), "x": kind}, "ts", "s")
    values = [Decimal("1.10"), Decimal("-2.00"), None, Decimal("1.10")]
    page = Page.of(schema, {"ts": [1, 2, 3, 4], "x": pa.array(values, kind)})
    low, high = Decimal("-2.00"), Decimal("1.10")
    asked = {
        Min("x"): low,
        Max("x"): high,
        First("x"): high,
        Mode("x"): high,
        CountDistinct("x"): 2,
        Sum("x"): Decimal("0.20"),
    }
    for aggregate, right in asked.items():
        try:
            driver = Driver(WindowAggregate(Tumbling(10), {"a": aggregate}), schema)
        except GraphError:
            assert kind.bit_width == 256
            continue
        driver.feed(0, page)
        driver.feed(0, END)
        assert driver.rows()[0]["a"] == right


def test_lists_that_are_views_keep_their_values() -> None:
    rows = [[1, 2], None, [], [3], [4, 5]]
    for found in (pa.list_view(pa.int64()), pa.large_list_view(pa.int64())):
        for kind in (pa.list_(pa.int8()), pa.large_list(pa.int64()), found):
            schema = Schema({"ts": pa.int64(), "x": kind}, "ts", "s")
            for start in range(3):
                some = rows[start:]
                page = Page.of(schema, {"ts": [1] * len(some), "x": pa.array(rows, found)[start:]})
                assert page.column("x").to_pylist() == some


def test_chunks_may_bring_more_categories_than_their_index_counts() -> None:
    schema = Schema({"ts": pa.int64(), "k": SMALL}, "ts", "s")
    page = Page.of(schema, {"ts": [1] * 300, "k": pa.chunked_array([nested(texts, SMALL) for texts in KEYS])})
    assert page.column("k").to_pylist() == [text for texts in KEYS for text in texts]


Reversed = namedtuple("Reversed", ["at", "n"])
WITHIN = pa.struct([("n", pa.int8()), ("at", pa.timestamp("s"))])
INSIDE: list[tuple[pa.DataType, Any, Any]] = [
    (pa.list_(pa.int8()), [1, 2.0], [1, 2]), (pa.list_(pa.int8()), [1, 2.5], None), (pa.list_(pa.int8()), [300], None),
    (pa.list_(pa.int8(), 2), [1, 2], [1, 2]), (pa.list_(pa.bool_()), [1], None),
    (pa.large_list(pa.string()), ["a"], ["a"]),
    (WITHIN, {"n": 1.0, "at": datetime(2024, 1, 1)}, {"n": 1, "at": datetime(2024, 1, 1)}),
    (WITHIN, {"n": 1, "at": 5}, None), (WITHIN, {"n": 1, "more": 2}, None), (WITHIN, {"n": 1}, {"n": 1, "at": None}),
    (pa.map_(pa.string(), pa.int8()), {"a": 1.0}, [("a", 1)]), (pa.map_(pa.string(), pa.int8()), {"a": 300}, None),
    (WITHIN, Reversed(datetime(2024, 1, 1), 1), {"n": 1, "at": datetime(2024, 1, 1)}),
    (pa.map_(pa.string(), pa.int8()), {None: 1}, None), (pa.map_(pa.string(), pa.int8()), {5: 1}, None),
    (pa.list_(WITHIN), [{"n": 1, "at": timedelta(1)}], None), (pa.list_(pa.int8()), "ab", None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "right"), INSIDE, ids=repr)
def test_values_in_lists_maps_and_structs_follow_the_same_rule(
    kind: pa.DataType, value: Any, right: Any
) -> None:
    schema = Schema({"ts": pa.int64(), "x": kind}, "ts", "s")
    made: list[Callable[[], Any]] = [lambda: [value, None]]
    try:
        array = pa.array([value, None])
        made.append(lambda: array)
    except pa.ArrowException:
        pass
    for column in made:
        if (pa.types.is_map(kind) or isinstance(value, tuple)) and column is not made[0]:
            continue  # Arrow has a dictionary as a struct, a tuple as a list
        if (
            isinstance(value, dict)
            and column is not made[0]
            and list(value) != [field.name for field in kind]
        ):
            continue  # a struct lacks a field or has another one
        if right is None:
            with pytest.raises(EngineError, match="page: 'x' must be"):
                Page.of(schema, {"ts": [1, 2], "x": column()})
        else:
            page = Page.of(schema, {"ts": [1, 2], "x": column()})
            assert page.column("x").to_pylist() == [right, None]


@pytest.mark.parametrize(
    ("found", "wanted", "values"),
    [
        (
            pa.map_(pa.string(), pa.binary()), pa.map_(pa.string(), pa.string()),
            [[("a", b"1"), ("b", b"2")], [("a", b"\xff")], None, [], [("a", b"3")]],
        ),
        (pa.list_(pa.int64(), 2), pa.list_(pa.int8(), 2), [[1, 2], [3, 300], None, [-200, 4], [5, 6]]),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int8()), [[("a", 1)], [("a", 300)], [("b", 2)]]),
    ],
)  # fmt: skip
def test_a_row_of_a_map_or_a_fixed_list_is_lost_alone(
    found: pa.DataType, wanted: pa.DataType, values: list[Any]
) -> None:
    """Each row is converted as it is alone, behind others and in a slice."""
    column = pa.array(values, found)
    alone = [converted(pa.array([value], found), wanted) for value in values]
    lost = [bad is not None and bad[0].as_py() for _, bad in alone]
    assert any(lost)
    for first in range(len(values)):
        made, bad = converted(column.slice(first), wanted)
        assert (bad.to_pylist() if bad is not None else [False] * len(made)) == lost[first:]
        assert made.to_pylist() == [one.to_pylist()[0] for one, _ in alone[first:]]
