"""Traces: what was written is read, and what cannot be read is said."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import (
    FOREVER,
    GroupWise,
    Joint,
    Linear,
    Page,
    Schema,
    UsageError,
    Watermark,
    open_trace,
    scan,
    write_trace,
)
from oop_engine.cli.app import app
from oop_engine.core.page import concat
from oop_engine.errors import TraceError
from oop_engine.extend import Message
from oop_engine.operators import Count
from oop_engine.testing.case import typed
from oop_engine.traces.format_registry import FORMATS, format_of
from oop_engine.traces.formats import json_lines, json_rows

CARRY = ["arrow", "jsonl", "msgpack"]
SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "ms")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TYPES = {
    "i8": (pa.int8(), st.integers(-128, 127)),
    "u64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "i64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f32": (pa.float32(), st.floats(width=32)),
    "f64": (pa.float64(), st.floats()),
    "b": (pa.bool_(), st.booleans()),
    "s": (pa.string(), TEXTS | st.sampled_from(["NA", "", '"', "\n"])),
    "large": (pa.large_string(), st.sampled_from(["", "null", 'a"b', "x,y", "\\", "\r\n"])),
    "d": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b", ""])),
    "ms": (pa.timestamp("ms"), st.integers(-(10**12), 10**13)),
    "us": (pa.timestamp("us", "UTC"), st.integers(-(10**15), 10**16)),
    "day": (pa.date32(), st.integers(0, 30_000)),
    'odd "name", \\': (pa.int32(), st.integers(0, 9)),
}  # fmt: skip
ALL = Schema({"ts": pa.int64()} | {name: kind for name, (kind, _) in TYPES.items()}, "ts", "ms")
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-(2**62), 2**62 - 1),
            **{n: st.none() | values for n, (_, values) in TYPES.items()},
        }
    ),
    max_size=8,
)


def page_of(rows: list[dict], arrival: list[int] | None = None) -> Page:
    columns = {name: typed([row[name] for row in rows], ALL.type_of(name)) for name in ALL.names}
    return Page.of(ALL, columns, arrival)


def arrivals(pages: Iterable[Page]) -> np.ndarray:
    return np.concatenate([page.arrival for page in pages if page.arrival is not None])


def same(a: pa.RecordBatch, b: pa.RecordBatch) -> bool:
    """Equal, where NaN is NaN."""
    return a.schema == b.schema and repr(a.to_pylist()) == repr(b.to_pylist())


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), ROWS, ROWS, st.booleans(), st.integers(1, 20))
def test_a_trace_comes_back_as_it_was_written(tmp_path_factory, format, first, second, arrives, page_rows):
    path = tmp_path_factory.mktemp("trace") / f"t.{format}"
    arrival = sorted(r["ts"] for r in first + second)
    cut = len(first)
    pages = [
        page_of(rows, times if arrives else None)
        for rows, times in [(first, arrival[:cut]), (second, arrival[cut:])]
        if rows
    ]
    assert write_trace(path, ALL, pages) == len(first) + len(second)
    trace = open_trace(path, ALL, arrival="arrival" if arrives and pages else None, page_rows=page_rows)
    read = list(trace.pages())
    assert all(0 < len(page) <= page_rows for page in read)
    assert same(concat(ALL, read).batch, concat(ALL, pages).batch)
    assert trace.refused == {}
    if read:
        expected = arrival if arrives else np.maximum.accumulate([r["ts"] for r in first + second])
        np.testing.assert_array_equal(arrivals(read), expected)


@pytest.mark.parametrize("format", CARRY)
def test_promises_stay_where_they_were(tmp_path, format):
    path = tmp_path / f"t.{format}"
    schema = Schema({"ts": pa.timestamp("ms"), "key": pa.string(), "day": pa.date32()}, "ts")
    at = [datetime(1970, 1, 1, 0, 0, 0, ms * 1000) for ms in (3, 1, 7)]
    messages: list[Message] = [
        Linear(-5),
        Page.of(
            schema, {"ts": at[:2], "key": ["a", "b"], "day": [date(1970, 1, 2), date(1970, 1, 3)]}, [3, 4]
        ),
        GroupWise.of({"key": pa.array(["a", None, 'q"\n'])}, [2, 3, FOREVER]),
        GroupWise.of({"day": pa.array([5], pa.date32())}, [2]),
        Joint.of(ts=4, ts_right=9),
        Watermark(Linear(11)),
        Watermark(GroupWise.of({"key": pa.array(["a"])}, [12])),
        Page.of(schema, {"ts": at[2:], "key": [None], "day": [None]}, [9]),
        Linear(10, arrival=12),
        GroupWise(pa.record_batch({"key": ["a"]}), np.array([13]), arrival=14),
        Watermark(GroupWise.of({"key": pa.array(["a"])}, [14]), arrival=-(2**63)),
        Linear(FOREVER),
    ]
    write_trace(path, schema, messages)
    trace = open_trace(path, schema, arrival="arrival")
    assert [getattr(each, "arrival", None) for each in list(trace)[-4:]] == [12, 14, -(2**63), None]
    assert list(trace) == messages
    assert list(trace) == messages  # and again


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_promises_are_refused_where_the_format_has_none(tmp_path, format):
    path = tmp_path / f"t.{format}"
    with pytest.raises(TraceError, match=r"carries no punctuation.*msgpack"):
        write_trace(path, SCHEMA, [Linear(3)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", ["parquet", "arrow", "msgpack"])
def test_binary_traces_know_their_schema(tmp_path, format):
    path = tmp_path / f"t.{format}"
    write_trace(path, SCHEMA, [Page.of(SCHEMA, {"ts": [5, 3], "key": ["a", "b"]}, [7, 8])])
    trace = open_trace(path)
    assert trace.schema == SCHEMA
    assert arrivals(trace.pages()).tolist() == [7, 8]


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_an_error_leaves_no_file_and_the_old_one_in_place(tmp_path, format):
    def messages():
        yield Page.of(SCHEMA, {"ts": [1], "key": ["a"]})
        raise KeyboardInterrupt

    path = tmp_path / f"t.{format}"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_trace(path, SCHEMA, messages())
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"


def test_formats_go_by_suffix(tmp_path):
    assert format_of("a/b.NDJSON") == "jsonl"
    assert format_of("a/b.feather") == "arrow"
    assert format_of("a/b.txt", "csv") == "csv"
    with pytest.raises(UsageError, match=r"is a folder: give one of its files, or read all with scan\("):
        open_trace(tmp_path, time="ts", unit="s")
    with pytest.raises(UsageError, match="unknown trace format 'txt'"):
        format_of("b.txt")


def test_columns_of_csv_are_guessed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "n,f,s,b,when,none,ts\n"
        "NA,1,a,true,2013-01-01 05:00:00,,5\n"
        "7,2.5,NA,false,2013-01-01T06:00:00.5,,no\n"
        "8,2.5,,false,2013-01-01 06:00,,7\n"
    )
    trace = open_trace(path, time="ts", unit="s")
    assert [str(f.type) for f in trace.schema.fields] == [
        "int64", "double", "string", "bool", "timestamp[us]", "string", "int64",
    ]  # fmt: skip
    rows = next(trace.pages()).to_pylist()
    assert [(r["n"], r["s"], r["ts"]) for r in rows] == [(None, "a", 5), (8, None, 7)]
    assert trace.refused == {"ts: cannot read 'no' as int64": 1}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((2**63, 1), pa.uint64()),
        ((2**64 - 1, 0), pa.uint64()),
        ((2**64, 1), pa.string()),
        ((2**63, -1), pa.string()),
        ((2**64, 0.5), pa.float64()),
        ((1, 0.5), pa.float64()),
    ],
    ids=str,
)
def test_large_integers_keep_their_digits(tmp_path, values, kind):
    csv, lines = tmp_path / "t.csv", tmp_path / "t.jsonl"
    csv.write_text("ts,id\n" + "".join(f"1,{value}\n" for value in values))
    lines.write_text("".join(f'{{"ts": 1, "id": {value}}}\n' for value in values))
    for path in (csv, lines):
        trace = open_trace(path, time="ts", unit="s")
        assert trace.schema.type_of("id") == kind
        rows = [row["id"] for page in trace.pages() for row in page.to_pylist()]
        assert rows == [str(value) if kind == pa.string() else value for value in values]
        assert trace.refused == {}


def test_decimals_go_through_text(tmp_path):
    kinds = [pa.decimal128(38, 30), pa.decimal128(5, -2), pa.decimal256(76, 40)]
    names = [f"d{place}" for place in range(len(kinds))]
    schema = Schema({"ts": pa.int64(), **dict(zip(names, kinds, strict=True))}, "ts", "s")
    rows = [Decimal("-1E-30"), Decimal("12300"), Decimal("0.1234567890123456789012345678901234567891")]
    page = Page.of(
        schema, {"ts": [1, 2], **{name: [row, None] for name, row in zip(names, rows, strict=True)}}
    )
    for format in ("csv", "jsonl"):
        path = tmp_path / f"t.{format}"
        write_trace(path, schema, [page])
        assert [
            row for page in open_trace(path, schema).pages() for row in page.to_pylist()
        ] == page.to_pylist()


def test_columns_of_json_lines_are_guessed(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"n": 1, "ts": "bad", "nested": {"a": 1}}\n{"ts": 2, "s": "007"}\n{"ts": 3, "n": 2.5}\n{"ts": 4}\n'
    )
    trace = open_trace(path, time="ts", unit="s")
    assert trace.schema.type_of("ts") == pa.int64()
    assert {"n", "s"} < set(trace.schema.names)
    assert [r["ts"] for p in trace.pages() for r in p.to_pylist()] == [2, 3, 4]
    assert trace.refused == {"ts: cannot read 'bad' as int64": 1}


def test_arrival_is_turned_into_the_unit_of_the_progressing_attribute(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table(
        {"ts": pa.array([1, 2], pa.timestamp("ms")), "at": pa.array([1999, 2000], pa.timestamp("us"))}
    )
    pq.write_table(table, path)
    trace = open_trace(path, time="ts", arrival="at")
    assert trace.schema.names == ["ts"]
    assert arrivals(trace.pages()).tolist() == [1, 2]
    kept = open_trace(path, Schema(table.schema, "ts"), arrival="at")
    assert next(kept.pages()).column("at").equals(table["at"].combine_chunks())


BAD_ROWS = {
    "csv": "ts,key,n\n1,a,1\n,b,2\nabc,c,3\n4,d,many\n5,e,\n",
    "jsonl": '{"ts": 1, "key": "a", "n": 1}\n{"key": "b", "n": 2}\n{"ts": "abc", "key": "c", "n": 3}\n'
    '{"ts": 4, "key": "d", "n": "many"}\n{"ts": 5, "key": "e"}\n',
}


@pytest.mark.parametrize("format", sorted(BAD_ROWS))
def test_rows_that_cannot_be_read_are_diverted_and_counted(tmp_path, format):
    path = tmp_path / f"t.{format}"
    path.write_text(BAD_ROWS[format])
    schema = Schema({"ts": pa.int64(), "key": pa.string(), "n": pa.int8()}, "ts", "s")
    diverted = []
    trace = open_trace(
        path, schema, on_refused=lambda row, rows, why: diverted.append((row, rows.num_rows, why))
    )
    assert [r["key"] for p in trace.pages() for r in p.to_pylist()] == ["a", "e"]
    assert trace.refused == {
        "ts is null": 1,
        "ts: cannot read 'abc' as int64": 1,
        "n: cannot read 'many' as int8": 1,
    }
    assert sorted(diverted) == [
        (2, 1, "ts is null"),
        (3, 1, "ts: cannot read 'abc' as int64"),
        (4, 1, "n: cannot read 'many' as int8"),
    ]


def test_values_that_would_lose_something_are_diverted(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"ts": [1.0, 2.5, 3.0, None], "n": [1, 1, 300, 1]}), path)
    trace = open_trace(path, Schema({"ts": pa.int64(), "n": pa.uint8()}, "ts", "s"))
    assert [p.to_pylist() for p in trace.pages()] == [[{"ts": 1, "n": 1}]]
    assert trace.refused == {
        "ts: cannot read 2.5 as int64": 1, "ts is null": 1, "n: cannot read 300 as uint8": 1
    }  # fmt: skip


def test_a_column_of_garbage_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("ts\n" + "".join(f"x{i}\n" for i in range(500)) + "1\n")
    trace = open_trace(path, Schema({"ts": pa.int64()}, "ts", "s"))
    assert [len(p) for p in trace.pages()] == [1]
    assert len(trace.refused) == 51
    assert sum(trace.refused.values()) == 500


def test_text_that_is_no_utf8_is_diverted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"ts,key\n1,\xff\xfe\n2,b\n\xff,c\n")
    trace = open_trace(path, SCHEMA)
    assert [r["ts"] for p in trace.pages() for r in p.to_pylist()] == [2]
    assert sum(trace.refused.values()) == 2


@pytest.mark.parametrize(("cells", "got"), [("3", 1), ("3,c,d", 3)])
def test_a_csv_row_of_another_length_is_refused_with_its_line(tmp_path, cells, got):
    path = tmp_path / "t.csv"
    path.write_text("ts,key\n1,a\n2,b\n" + cells + "\n4,d\n")
    refused = []
    trace = open_trace(path, SCHEMA, on_refused=lambda row, rows, reason: refused.append(rows.to_pylist()))
    assert [r["ts"] for p in trace.pages() for r in p.to_pylist()] == [1, 2, 4]
    assert trace.refused == {f"must have 2 cells; got {got} (first in line 4)": 1}
    assert refused == [[{"line": cells.encode(), "number": 4}]]


def test_a_short_csv_row_far_down_has_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("ts,key\n" + "1,aaaaaaaaaa\n" * 200_000 + "2\n")
    trace = open_trace(path, SCHEMA)
    assert sum(map(len, trace.pages())) == 200_000
    assert trace.refused == {"must have 2 cells; got 1 (first in line 200,002)": 1}


@pytest.mark.parametrize("format", sorted(FORMATS))
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.97])
def test_a_file_that_was_cut_off_is_an_error(tmp_path, format, keep):
    path = tmp_path / f"t.{format}"
    pages = [Page.of(SCHEMA, {"ts": [i, i + 1], "key": ["a", "b"]}, [i, i + 1]) for i in range(50)]
    write_trace(path, SCHEMA, pages)
    whole = path.read_bytes()
    size = int(keep * len(whole)) if format != "csv" else whole.index(b"\n") + 1 + (3 if keep else -2)
    path.write_bytes(whole[:size])
    if format == "jsonl" and not keep:
        assert list(open_trace(path, SCHEMA)) == []  # nothing is a trace of nothing
        return
    if format == "csv" and keep:  # a line may be the last without a line break, so it is refused alone
        trace = open_trace(path, SCHEMA)
        assert sum(map(len, trace)) + sum(trace.refused.values()) == 1
        assert trace.refused
        return
    with pytest.raises(TraceError, match=rf"{path.name}: "):
        list(open_trace(path, SCHEMA))


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_file_of_something_else_is_an_error(tmp_path, format):
    path = tmp_path / f"t.{format}"
    path.write_bytes(b"\x93\x01\x02\x03 hello\n" * 20)
    with pytest.raises(TraceError, match=r"t\."):
        list(open_trace(path, SCHEMA))


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_missing_column_is_an_error(tmp_path, format):
    path = tmp_path / f"t.{format}"
    write_trace(path, SCHEMA, [Page.of(SCHEMA, {"ts": [1], "key": ["a"]})])
    other = Schema({"when": pa.int64()}, "when", "ms")
    for ask in (lambda: open_trace(path, other), lambda: open_trace(path, time="when", unit="ms")):
        with pytest.raises(TraceError, match="no column 'when'; there are ts, key"):
            ask()
    with pytest.raises(TraceError, match="no column 'at'"):
        open_trace(path, SCHEMA, arrival="at")


@pytest.mark.parametrize(
    ("found", "wanted"),
    [(pa.bool_(), pa.int64()), (pa.int64(), pa.timestamp("ms")), (pa.int64(), pa.duration("s")),
     (pa.timestamp("ms", "UTC"), pa.timestamp("ms")), (pa.int64(), pa.string())],
)  # fmt: skip
def test_a_column_of_another_type_is_an_error(tmp_path, found, wanted):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"ts": [1], "x": pa.array([None], found)}), path)
    with pytest.raises(TraceError, match=r"column 'x' must be .*; got"):
        open_trace(path, Schema({"ts": pa.int64(), "x": wanted}, "ts", "s"))


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_arrival_that_goes_back_is_an_error(tmp_path, format):
    path = tmp_path / f"t.{format}"
    schema = Schema({"ts": pa.int64(), "at": pa.int64()}, "ts", "ms")
    write_trace(path, schema, [Page.of(schema, {"ts": [1, 2, 3], "at": [5, 9, 7]})])
    message = r"row 3: arrival 'at' must not go back; got 7 ms after 9 ms: sort the trace by 'at'"
    for page_rows in (1, 2, 10):
        with pytest.raises(TraceError, match=message):
            list(open_trace(path, schema, arrival="at", page_rows=page_rows))


def test_arrival_must_be_a_time_like_the_progressing_attribute(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"ts": pa.array([1], pa.timestamp("ms")), "at": [1]}), path)
    with pytest.raises(TraceError, match=r"arrival column 'at' must be a time as 'ts' is.*got int64"):
        open_trace(path, time="ts", arrival="at")


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_zeros_behind_the_digits_of_a_unit_are_no_loss(tmp_path, format):
    path = tmp_path / f"t.{format}"
    texts = [
        "2024-01-01T00:00:01.800000+00:00", "2024-01-01 00:00:02.000000Z", "2024-01-01T00:00:03.1230",
        "2024-01-01T00:00:04.1234000", "2024-01-01T00:00:05.12300400Z", "2024-01-01T00:00:06",
    ]  # fmt: skip
    rows = ["ts,at", *(f"{text},07:00:00.500000" for text in texts)]
    if format == "jsonl":
        rows = [f'{{"ts": "{text}", "at": "07:00:00.500000"}}' for text in texts]
    path.write_text("\n".join(rows))
    schema = Schema({"ts": pa.timestamp("ms", "UTC"), "at": pa.time32("ms")}, "ts")
    trace = open_trace(path, schema)
    [page] = trace.pages()
    assert (page.times % 100_000).tolist() == [1_800, 2_000, 3_123, 6_000]
    assert page.column("at").cast(pa.int32()).to_pylist() == [25_200_500] * 4
    assert trace.refused == {f"ts: cannot read {text!r} as timestamp[ms, tz=UTC]": 1 for text in texts[3:5]}
    for kind in (pa.timestamp("s", "UTC"), pa.timestamp("s")):  # a zone is neither dropped nor added
        whole = open_trace(path, Schema({"ts": kind}, "ts"))
        assert [page.times.tolist()[-1] % 100 for page in whole.pages()] == [6]
        assert sum(whole.refused.values()) == (4 if kind.tz else 5)


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.string()), pa.struct({"a": pa.int64()}), pa.duration("ms")], ids=str
)
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_columns_that_no_text_can_be_are_told(tmp_path, format, kind):
    if format == "jsonl" and not pa.types.is_duration(kind):
        pytest.skip("JSON has lists and objects")
    path = tmp_path / f"t.{format}"
    path.write_text("ts,v\n1,2\n" if format == "csv" else '{"ts": 1, "v": [2]}\n')
    with pytest.raises(
        TraceError, match=r"column 'v': .* has no text form: use arrow, or leave the column out"
    ):
        open_trace(path, Schema({"ts": pa.int64(), "v": kind}, "ts", "s"))


def test_questions_that_cannot_be_answered(tmp_path):
    path = tmp_path / "t.csv"
    with pytest.raises(TraceError, match="does not exist"):
        open_trace(path)
    path.write_text("ts,key\n1,a\n")
    with pytest.raises(TraceError, match="which column makes progress"):
        open_trace(path)
    with pytest.raises(TraceError, match="needs a unit"):
        open_trace(path, time="ts")
    with pytest.raises(
        TraceError,
        match="is text, and no event time: most of its first values are no whole numbers or",
    ):
        open_trace(path, time="key")
    pq.write_table(pa.table({"ts": [0.5]}), tmp_path / "t.parquet")
    with pytest.raises(
        TraceError, match="is double, and no event time: write whole numbers in a smaller unit"
    ):
        open_trace(tmp_path / "t.parquet", time="ts")
    (tmp_path / "t.jsonl").write_text("")
    with pytest.raises(TraceError, match="has no rows, so no columns: give a schema"):
        open_trace(tmp_path / "t.jsonl", time="ts")
    with pytest.raises(TraceError, match="is no file"):
        open_trace(tmp_path, format="csv")
    path.write_text("ts,ts\n1,2\n")
    with pytest.raises(TraceError, match="line 1: column names must differ"):
        open_trace(path, time="ts", unit="s")
    path.write_text("ts,key\n")
    assert list(open_trace(path, SCHEMA)) == []
    with pytest.raises(
        TraceError, match="is text, and no event time, for there are no values to tell: give a schema"
    ):
        open_trace(path, time="ts", unit="s")


def test_what_a_format_cannot_hold_is_said(tmp_path):
    nested = Schema({"ts": pa.int64(), "l": pa.list_(pa.int8())}, "ts", "s")
    for format in ("csv", "jsonl"):
        with pytest.raises(TraceError, match=r"column 'l': list.* has no text form: use arrow"):
            write_trace(tmp_path / f"t.{format}", nested, [])
    arrival = Schema({"ts": pa.int64(), "arrival": pa.int64()}, "ts", "s")
    with pytest.raises(TraceError, match="column 'arrival' already"):
        write_trace(tmp_path / "t.csv", arrival, [Page.of(arrival, {"ts": [1], "arrival": [2]}, [2])])
    with pytest.raises(TraceError, match=r"cannot be written"):
        write_trace(tmp_path / "nowhere" / "t.csv", SCHEMA, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_memory_does_not_grow_with_the_file(tmp_path, format):
    def peak(pages: int) -> int:
        path = tmp_path / f"{pages}.{format}"
        ts = np.arange(20_000)
        page = {"ts": ts, "key": pa.array(ts % 977).cast(pa.string())}
        write_trace(path, SCHEMA, (Page.of(SCHEMA, page) for _ in range(pages)))
        before = pa.total_allocated_bytes()
        return max(pa.total_allocated_bytes() - before for _ in open_trace(path, SCHEMA, page_rows=20_000))

    assert peak(150) < peak(50) * 1.2 + 4_000_000


def test_lists_and_objects_of_json_lines_are_guessed(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [
        {
            "ts": 1,
            "ctx": {"user": "a", "ms": 1, "at": {"n": 1}},
            "tags": ["x"],
            "more": [{"k": 1}],
            "id": [1],
        },
        {
            "ts": 2,
            "ctx": {"user": None, "ms": 2.5, "new": True},
            "tags": [],
            "more": [],
            "no": [],
            "id": ["b"],
        },
        {"ts": 3, "ctx": None, "tags": None, "no": {}},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    trace = open_trace(path, time="ts", unit="s")
    ctx = pa.struct(
        {"user": pa.string(), "ms": pa.float64(), "at": pa.struct({"n": pa.int64()}), "new": pa.bool_()}
    )
    assert trace.schema.fields.field("ctx").type == ctx
    assert trace.schema.fields.field("tags").type == pa.list_(pa.string())
    assert trace.schema.fields.field("more").type == pa.list_(pa.struct({"k": pa.int64()}))
    assert trace.schema.names == ["ts", "ctx", "tags", "more"]  # the others have no type in common
    found = [row for page in trace.pages() for row in page.to_pylist()]
    assert found == [
        {
            "ts": row["ts"],
            "ctx": row["ctx"] and {"user": None, "ms": None, "at": None, "new": None} | row["ctx"],
            "tags": row["tags"],
            "more": row.get("more"),
        }
        for row in rows
    ]
    assert trace.notes == [
        "id[]: left out, for its first values are texts beside other values; a schema declares it",
        "no: left out, for its first values are lists and objects; a schema declares it",
    ]
    more = '{"ts": 4, "ctx": {"ms": "slow", "at": 5}, "tags": [["y"]]}\n'
    path.write_text(path.read_text() + more)
    trace = open_trace(path, time="ts", unit="s")
    assert trace.schema.fields.field("ctx").type.names == ["user", "new"]
    assert [note.split(":")[0] for note in trace.notes] == ["ctx.ms", "ctx.at", "tags[]", "id[]", "no"]
    assert sum(map(len, trace.pages())) == 4


def test_rows_whose_lists_and_objects_are_not_read_are_good(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "_BLOCK", 20)  # so that types are guessed by the first line
    path, graph = tmp_path / "t.jsonl", tmp_path / "graph.py"
    path.write_text('{"ts": 1, "o": {"a": 1}}\n' + '{"ts": 2, "o": {"a": [1]}}\n{"ts": 3, "o": 5}\n')
    assert scan(path).event_time("ts", unit="s").agg(n=Count()).run().table["n"].to_pylist() == [3]
    graph.write_text(
        "from oop_engine import Graph\nfrom oop_engine.operators import Count, Tumbling, WindowAggregate\n"
        "def graph(schemas, policies):\n    g = Graph('g')\n"
        "    counts = WindowAggregate(Tumbling(10), {'n': Count()})\n"
        "    g.sink('n', g.add('w', counts, g.source('t', schemas['t'])))\n    return g\n"
    )
    assert open_trace(path, time="ts", unit="s").schema.type_of("o") == pa.struct({"a": pa.int64()})
    done = CliRunner().invoke(app, ["run", str(graph), str(path), "--time", "ts", "--unit", "s", "--json"])
    assert [json.loads(line)["n"] for line in done.stdout.splitlines()] == [3], done.output


NESTED = Schema(
    {
        "ts": pa.int64(),
        "ctx": pa.struct(
            {
                "user": pa.string(), "ms": pa.float64(), "n": pa.int8(), "at": pa.timestamp("us", "UTC"),
                "ok": pa.bool_(), "tags": pa.list_(pa.string()), "price": pa.decimal128(9, 2),
                "more": pa.list_(pa.struct({"k": pa.int64(), "x": pa.float32()})),
            }
        ),
        "marks": pa.map_(pa.string(), pa.int64()),
    },
    "ts", "s",
)  # fmt: skip
WITHOUT_MAP = NESTED.select(["ts", "ctx"])
PARTS: dict[str, list[Any]] = {
    "user": ["a", "é\n", "", None, 5, True],
    "ms": [1, 2.5, None, 1e300, 9007199254740993, "7", "x"],
    "n": [1, -128, None, 128, 1.5, 2.0],
    "at": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+02:00", None, "x", 5],
    "ok": [True, False, None, "true", 1],
    "tags": [[], ["a", None], None, "a", [1], [["a"]]],
    "price": ["1.50", "2", None, 1.25, "1.505"],
    "more": [[], [{"k": 1, "x": 0.5}], [{"k": None}, {}], [{"y": 1}], [None], None, {"k": 1}],
    "other": [1, {"a": [1]}],
}
MORE = st.sampled_from([{}, {"marks": {"a": 1}}, {"no": 1}])
OBJECTS = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values[:3]) for name, values in PARTS.items()}
)
ODD = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in PARTS.items()})


@settings(max_examples=80)
@given(
    rows=st.lists(
        st.tuples(st.none() | OBJECTS | OBJECTS, st.sampled_from([{}, {"marks": {"a": 1}}, {"no": 1}])),
        max_size=8,
    ),
    odd=st.none() | ODD,
    schema=st.sampled_from([NESTED, WITHOUT_MAP]),
    counts=st.booleans(),
)
def test_lists_and_objects_are_the_same_however_lines_are_read(
    rows: Any, odd: Any, schema: Schema, counts: bool, tmp_path_factory: Any
) -> None:
    lines = [{"ts": n, "ctx": ctx} | more for n, (ctx, more) in enumerate(rows)]
    lines += [] if odd is None else [{"ts": 99, "ctx": odd}]
    path = tmp_path_factory.mktemp("json") / "t.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def read() -> tuple[Any, ...]:
        trace = open_trace(path, schema)
        trace.counts_unknown = counts
        found = [row for page in trace.pages() for row in page.to_pylist()]
        return found, trace.refused, dict(trace.unknown)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "_at_once", lambda *_: None)
        one_by_one = read()
    assert read() == one_by_one


def test_lines_with_lists_and_objects_are_read_at_once(tmp_path, monkeypatch):
    path = tmp_path / "t.jsonl"
    good = {name: values[0] for name, values in PARTS.items()}
    path.write_text("".join(json.dumps({"ts": n, "ctx": good, "no": [n]}) + "\n" for n in range(3)))
    monkeypatch.setattr(json_rows, "line_by_line", None)
    assert sum(map(len, open_trace(path, WITHOUT_MAP).pages())) == 3


@pytest.mark.parametrize("name", ["app.log", "events.json", "noted", "app.log.gz"])
def test_a_file_of_another_suffix_that_begins_with_an_object_is_of_json_lines(name, tmp_path):
    path, text = tmp_path / name, b'\xef\xbb\xbf\n {"ts": 1, "k": "a"}\n{"ts": 2}\n'
    packed = gzip.compress if name.endswith(".gz") else bytes
    path.write_bytes(packed(text))
    assert sum(map(len, open_trace(path, time="ts", unit="s").pages())) == 2
    assert scan(path).event_time("ts", unit="s").run().table.num_rows == 2
    with pytest.raises(UsageError, match="unknown trace format"):
        write_trace(path, SCHEMA, [])
    path.write_bytes(packed(b"ts,k\n1,a\n"))
    with pytest.raises(
        UsageError, match=r"unknown trace format .*; CSV of another suffix is read with csv=CsvFormat"
    ):
        scan(path)
