"""Files that mean harm, or were damaged: read, diverted and counted, or one ``TraceError``."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import open_trace, write_trace
from oop_engine.core.errors import TraceError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Joint, Linear
from oop_engine.core.schema import Schema
from oop_engine.traces.profiling import profile
from oop_engine.traces.validation import MOST_TIME

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
GOOD = '{"ts": 1, "key": "a"}\n'
DEEP = "[" * 200_000


def rows(trace) -> list[dict]:
    return [row for page in trace.pages() for row in page.to_pylist()]


def lines(path: Path, *said: str | bytes):
    path.write_bytes(b"".join(line if isinstance(line, bytes) else line.encode() for line in said))
    return open_trace(path, time="ts", unit="s")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"ts": 2, "other": ' + DEEP + "}\n", "the line is nested deeper than 64 levels"),
        ('{"ts": 2, "key": ' + "[" * 65 + "]" * 65 + "}\n", "the line is nested deeper than 64 levels"),
        ('{"ts": 2, "key": [1]}\n', "key is a list or an object"),
        ("null\n", "the line is no JSON object"),
        ('{"ts": 2}{"ts": 3}\n', "the line is no JSON object"),
        ('{"ts": 2} null\n', "the line is no JSON object"),
        (b'{"ts": 2, "key": "\xff"}\n', "the line is no UTF-8"),
        (b'{"ts": 2, "other": "\xff"}\n', "the line is no UTF-8"),
        ('{"ts": 9223372036854775807}\n', "ts is beyond ±2^62 s"),
        ('{"ts": -4611686018427387905}\n', "ts is beyond ±2^62 s"),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_bad_line_is_refused_alone(tmp_path, line, why):
    trace = lines(tmp_path / "t.jsonl", GOOD, line, GOOD)
    assert rows(trace) == 2 * [{"ts": 1, "key": "a"}]
    assert trace.refused == {why: 1}


def test_a_refused_line_is_handed_over_as_it_stands(tmp_path):
    path, seen = tmp_path / "t.jsonl", []
    path.write_text(GOOD + "garbage\n")
    list(
        open_trace(
            path, SCHEMA, on_refused=lambda row, batch, why: seen.append((row, batch.to_pylist(), why))
        )
    )
    assert seen == [(2, [{"line": b"garbage"}], "the line is no JSON object")]


def test_what_is_nested_in_no_wanted_column_is_left_aside(tmp_path):
    trace = lines(tmp_path / "t.jsonl", GOOD, '{"ts": 2, "key": "b", "more": {"x": [{"y": [1]}]}}\n')
    assert [row["ts"] for row in rows(trace)] == [1, 2]
    assert trace.refused == {}


def test_an_object_over_two_lines_is_two_bad_lines(tmp_path):
    trace = lines(tmp_path / "t.jsonl", GOOD, '{"ts": 2,\n"key": "b"}\n')
    assert (len(rows(trace)), trace.refused) == (1, {"the line is no JSON object": 2})


@pytest.mark.slow
def test_keys_without_end_are_refused_at_once(tmp_path):
    with pytest.raises(TraceError, match=r"has more than 1,00\d different keys.*give a schema"):
        lines(tmp_path / "t.jsonl", *(f'{{"ts": {i}, "k{i}": 1}}\n' for i in range(2000)))
    path = tmp_path / "t.jsonl"
    wanted = Schema({"k7": pa.int64(), "k1999": pa.int64(), "late": pa.int64()}, "late", "s")
    path.write_text(path.read_text() + '{"late": 5, "k1999": 6}\n')
    known = open_trace(path, wanted)
    assert rows(known) == [{"k7": None, "k1999": 6, "late": 5}]
    later = [GOOD] * 48_000 + [f'{{"ts": {i}, "k{i}": 1}}\n' for i in range(2000)]
    assert len(rows(lines(tmp_path / "t.jsonl", *later))) == 50_000  # what no column asks for costs nothing


def test_a_misfit_of_csv_that_is_no_utf8_is_one_line(tmp_path, capfd):
    (tmp_path / "t.csv").write_bytes(b"ts,key\n1,a\n2,b\xff,c\n")
    trace = open_trace(tmp_path / "t.csv", SCHEMA)
    assert sum(map(len, trace.pages())) == 1
    assert trace.refused == {"must have 2 cells; got 3 (first in line 3)": 1}
    assert capfd.readouterr().err == ""


def test_a_line_without_end_is_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    for size in (6 << 20, 4 << 20):
        path.write_text(
            '{"ts": 1, "key": "a"}\n{"ts": 2, "key": "' + "x" * size + '"}\n{"ts": 3, "key": "c"}\n'
        )
        trace = open_trace(path, SCHEMA)
        assert [r["ts"] for p in trace.pages() for r in p.to_pylist()] == [1, 3]
        assert trace.refused == {"a line must be shorter than 4,194,304 bytes": 1}


@pytest.mark.parametrize(
    "said",
    [
        {"below": 10**20}, {"below": 1.5}, {"below": True}, {"below": "5"}, {"below": None}, {}, [], 5,
        {"groups": []}, {"groups": {}, "below": []}, {"groups": {"key": "a"}, "below": [1]},
        {"groups": {"key": ["a"]}, "below": [1, 2]}, {"groups": {"key": ["a"]}, "below": [10**20]},
        {"groups": {"key": ["a"], "ts": []}, "below": [1]}, {"groups": {"nokey": ["a"]}, "below": [1]},
        {"groups": {"ts": ["a"]}, "below": [1]}, {"groups": {"key": [["a"]]}, "below": [1]},
        {"joint": 5}, {"joint": {}}, {"joint": {"ts": 1.5}}, {"joint": {"ts": [1]}},
    ],
)  # fmt: skip
def test_a_punctuation_of_another_shape_is_an_error(tmp_path, said):
    with pytest.raises(TraceError, match=r"t.jsonl: cannot be read"):
        list(lines(tmp_path / "t.jsonl", GOOD, json.dumps({"punctuation": said}) + "\n"))


def test_a_punctuation_that_is_nested_deep_is_an_error(tmp_path):
    with pytest.raises(TraceError, match="nested deeper than 64"):
        list(lines(tmp_path / "t.jsonl", GOOD, '{"punctuation": {"below": ' + DEEP + "\n"))


def frames(path: Path, *more: object) -> Path:
    """Return a trace in msgpack of no page, with some frames."""
    write_trace(path, SCHEMA, [])
    head = msgpack.Unpacker(BytesIO(path.read_bytes())).unpack()
    path.write_bytes(b"".join(map(msgpack.packb, [head, *more])))
    return path


def groups_of(*batches: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("key", pa.string())])) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    "frame",
    [
        ["page", b""], ["page", b"x" * 100], ["page"], ["page", 5], ["page", b"", 1], [], 5, {}, ["what"],
        ["linear", 2**63], ["linear", 1.5], ["linear", True], ["linear"], ["joint", [["ts", float("inf")]]],
        ["joint", [["ts"]]], ["joint", []], ["joint", [["ts", 1], ["ts", 2]]], ["joint", 5],
        ["group-wise", groups_of(), b""], ["group-wise", b"", b""], ["group-wise", b"no", b""],
        ["group-wise", groups_of(pa.record_batch({"key": ["a"]})), b"123"],
        ["group-wise", groups_of(pa.record_batch({"key": ["a"]})), b"1" * 16],
        ["end"], ["end", 1], ["end", 0, 0], [list(range(70_000))],
    ],
)  # fmt: skip
def test_a_frame_of_another_shape_is_an_error(tmp_path, frame):
    with pytest.raises(TraceError, match=r"t.msgpack: "):
        list(open_trace(frames(tmp_path / "t.msgpack", frame, ["end", 0])))


def test_a_list_that_claims_to_be_long_takes_no_memory(tmp_path):
    path = frames(tmp_path / "t.msgpack")
    path.write_bytes(path.read_bytes() + b"\xdd\x3f\xff\xff\xff")  # a list of 2^30 - 1
    with pytest.raises(TraceError, match="cannot be read"):
        list(open_trace(path))


def test_a_joint_promise_may_name_anything(tmp_path):
    promise = '{"punctuation": {"joint": {"cls": 2, "b": 3}}}\n'
    assert list(lines(tmp_path / "t.jsonl", GOOD, promise))[1] == Joint((("b", 3), ("cls", 2)))


@pytest.mark.parametrize("format", ["arrow", "msgpack"])
def test_promises_have_the_types_of_the_columns(tmp_path, format):
    path = tmp_path / f"t.{format}"
    large = GroupWise(pa.record_batch({"key": pa.array(["a"], pa.large_string())}), np.array([3]))
    write_trace(path, SCHEMA, [large, Linear(5)])
    assert list(open_trace(path)) == [GroupWise.of({"key": ["a"]}, [3]), Linear(5)]
    write_trace(path, SCHEMA, [GroupWise.of({"key": [7]}, [3])])
    with pytest.raises(TraceError, match="groups by 'key', which is string; got int64"):
        list(open_trace(path))
    only_ts = Schema({"ts": pa.int64()}, "ts", "s")
    with pytest.raises(TraceError, match="groups by 'key', which is no column that is read"):
        list(open_trace(path, only_ts))


def test_marks_that_are_no_text_are_an_error(tmp_path):
    fields = SCHEMA.fields.with_metadata({b"oop_engine.time": b"\xff"})
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink:
        pa.ipc.new_file(sink, fields).close()
    pq.write_table(fields.empty_table(), tmp_path / "t.parquet")
    head = ["oop-trace/1", bytes(fields.serialize())]
    (tmp_path / "t.msgpack").write_bytes(msgpack.packb(head) + msgpack.packb(["end", 0]))
    for format in ("arrow", "parquet", "msgpack"):
        with pytest.raises(TraceError, match=r"cannot be read .*utf-8"):
            open_trace(tmp_path / f"t.{format}")


def test_a_zone_that_is_no_text_is_an_error(tmp_path):
    path = tmp_path / "t.arrow"
    zoned = Schema({"ts": pa.int64(), "at": pa.timestamp("s", "UTC")}, "ts", "s")
    write_trace(path, zoned, [Page.of(zoned, {"ts": [1], "at": pa.array([1], pa.timestamp("s", "UTC"))})])
    path.write_bytes(path.read_bytes().replace(b"UTC\0", b"U\xffC\0"))
    for schema in (None, zoned):
        with pytest.raises(TraceError, match=r"cannot be read .*utf-8"):
            open_trace(path, schema)


def twice(path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["ts", "ts"])
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        path.write_bytes(
            msgpack.packb(["oop-trace/1", bytes(table.schema.serialize())]) + msgpack.packb(["end", 0])
        )


@pytest.mark.parametrize("format", ["arrow", "parquet", "msgpack"])
def test_a_column_twice_is_an_error(tmp_path, format):
    twice(tmp_path / f"t.{format}")
    with pytest.raises(TraceError, match="column names must differ; got 'ts' twice"):
        open_trace(tmp_path / f"t.{format}", time="ts", unit="s")


def no_utf8() -> pa.RecordBatch:
    keys = pa.array([b"a", b"caf\xe9", b"\xff"], pa.binary())
    return pa.RecordBatch.from_arrays([pa.array([1, 2, 3]), keys.view(pa.string())], names=["ts", "key"])


@pytest.mark.parametrize("format", ["arrow", "parquet", "msgpack"])
def test_text_that_is_no_utf8_is_refused_where_it_enters(tmp_path, format):
    path = tmp_path / f"t.{format}"
    write_trace(path, SCHEMA, [Page(SCHEMA, no_utf8())])
    seen = []
    trace = open_trace(path, on_refused=lambda row, batch, why: seen.append(batch.to_pylist()))
    assert rows(trace) == [{"ts": 1, "key": "a"}]
    assert sum(trace.refused.values()) == 2
    assert seen[0] == [{"ts": 2, "key": b"caf\xe9"}]


def test_rows_that_the_footer_knows_and_the_file_has_not_are_an_error(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"ts": range(300)}), path)
    found = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *a, **k: list(found(*a, **k))[:-1])
    trace = open_trace(path, time="ts", unit="s", page_rows=100)
    with pytest.raises(TraceError, match="must have 300 rows, by its footer; got 200"):
        list(trace)


def test_an_arrow_file_that_is_cut_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "t.arrow"
    page = Page.of(SCHEMA, {"ts": np.arange(1 << 16), "key": ["abcdefgh"] * (1 << 16)})
    write_trace(path, SCHEMA, [page] * 8)
    reading = iter(open_trace(path))
    next(reading)
    with path.open("r+b") as file:
        file.truncate(1 << 20)
    with pytest.raises(TraceError, match="cannot be read"):
        list(reading)


@pytest.mark.parametrize("format", ["arrow", "parquet", "csv", "jsonl", "msgpack"])
def test_times_at_the_ends_of_the_integers_are_diverted(tmp_path, format):
    path = tmp_path / f"t.{format}"
    schema = Schema({"ts": pa.int64(), "at": pa.uint64()}, "ts", "s")
    times = [-(2**63), -MOST_TIME - 1, -MOST_TIME, 0, 3, MOST_TIME - 1, MOST_TIME, 2**63 - 1]
    page = Page.of(schema, {"ts": times, "at": [*range(4), 2**64 - 1, 5, 6, 7]})
    write_trace(path, schema, [page])
    trace = open_trace(path, schema, arrival="at")
    assert [row["ts"] for row in rows(trace)] == [-MOST_TIME, 0, MOST_TIME - 1]
    assert trace.refused == {"ts is beyond ±2^62 s": 4, "at is beyond ±2^62 s": 1}


def test_an_arrival_that_its_unit_cannot_hold_is_diverted(tmp_path):
    path = tmp_path / "t.parquet"
    times = pa.array([1, 2, 3], pa.timestamp("ns"))
    pq.write_table(pa.table({"ts": times, "at": pa.array([1, 2, 10**15], pa.timestamp("ms"))}), path)
    trace = open_trace(path, time="ts", arrival="at")
    assert (len(rows(trace)), trace.refused) == (2, {"at is beyond ±2^62 ns": 1})


def test_a_profile_of_times_far_apart_does_not_wrap_round():
    ends = [-(2**63), 2**63 - 1, -(2**63), 2**62 + 1, -(2**62) - 1]
    schema = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
    found = profile([Page.of(schema, {"ts": ends, "key": list("ababa")})], schema, by=("key",))
    assert found.shape != "ordered"
    assert (found.lateness.out_of_order, found.lateness.most) == (3, 2**63 - 1)
    assert found.own_lateness is not None
    assert found.own_lateness.out_of_order == 1


@pytest.mark.slow
def test_a_wide_file_takes_time_by_its_cells_only(tmp_path):
    names = ["ts", *(f"c{i}" for i in range(1000))]
    path = tmp_path / "t.csv"
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    with pytest.raises(TraceError, match=r"no column 'when'; there are ts, c0.*and 981 more"):
        open_trace(path, time="when", unit="s")
    assert len(rows(open_trace(path, time="ts", unit="s"))) == 1


def test_a_page_of_a_wide_file_is_short(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"ts": range(20_000)} | {f"c{i}": pa.nulls(20_000, pa.int8()) for i in range(1000)})
    pq.write_table(table, path)
    assert max(map(len, open_trace(path, time="ts", unit="s").pages())) <= (1 << 24) // 1001
