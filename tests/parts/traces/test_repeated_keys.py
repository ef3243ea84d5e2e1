"""An object that has a key twice, and columns that are called punctuation: one rule where JSON and msgpack are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import Graph, Linear, Page, Schema, open_trace, replay, serve, write_trace
from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.errors import TraceError
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import FileTail, GrowingFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Pairs = list[tuple[str, Any]]
SCHEMA = Schema({"ts": pa.int64(), "v": pa.string()}, "ts", "s")
CALLED = Schema({"ts": pa.int64(), "punctuation": pa.string()}, "ts", "s")
WHOLE: Pairs = [("ts", 1), ("v", "a")]
TWICE: dict[str, tuple[Pairs, str]] = {
    "two values": ([*WHOLE, ("v", "b")], "v"),
    "the same value": ([*WHOLE, ("v", "a")], "v"),
    "null first": ([("ts", 1), ("v", None), ("v", "b")], "v"),
    "null last": ([*WHOLE, ("v", None)], "v"),
    "the time": ([("ts", 1), ("v", "a"), ("ts", 2)], "ts"),
}
ONCE: dict[str, Pairs] = {
    "another key": [*WHOLE, ("w", 1), ("w", 2)],
    "within a value": [*WHOLE, ("w", [1, 1])],
}


def as_json(pairs: Pairs) -> bytes:
    return b"{" + b", ".join(f"{json.dumps(k)}: {json.dumps(v)}".encode() for k, v in pairs) + b"}"


def as_msgpack(pairs: Pairs) -> bytes:
    packer = msgpack.Packer(autoreset=False)
    packer.pack_map_pairs(pairs)
    return packer.bytes()


def read(name: str, schema: Schema, data: Any) -> tuple[list[Any], list[str]]:
    """Return the rows and punctuation of some messages, and the reasons of what was refused."""
    reasons = list[str]()
    made = MESSAGE_FORMATS[name](schema, "source 'in'", lambda reason, record, rows: reasons.append(reason))
    found: list[Any] = []
    for message in made.messages(data):
        found += message.to_pylist() if isinstance(message, Page) else [message]
    return found, reasons


async def served(source: Any) -> tuple[list[Any], list[str]]:
    graph, sink = Graph("g"), Gathered()
    graph.sink("out", graph.source("in", SCHEMA))
    done = await serve(graph, {"in": source}, {"out": sink})
    return sink.rows, [*done.unreadable.get("in", {})]


def through(door: str, pairs: Pairs, folder: Path) -> tuple[list[Any], list[str]]:
    """Return the rows of one object through a door, and the reasons of what was refused."""
    path = folder / "in.jsonl"
    path.write_bytes(as_json(pairs) + b"\n")
    match door:
        case "trace":
            trace = open_trace(path, SCHEMA)
            return [row for page in trace for row in page.to_pylist()], [*trace.refused]  # type: ignore[union-attr]
        case "tail":
            return run_async(served(FileTail(path, follow=False)))
        case "folder":
            return run_async(served(GrowingFolder(folder, SCHEMA, follow=False)))
        case "lines":
            return read("jsonl", SCHEMA, as_json(pairs) + b"\n")
        case "broker":
            return read("jsonl", SCHEMA, [as_json(pairs)])
    return read("msgpack", SCHEMA, [as_msgpack(pairs)])


DOORS = ["trace", "tail", "folder", "lines", "broker", "msgpack"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("pairs", "name"), TWICE.values(), ids=TWICE)
def test_a_row_that_has_a_column_twice_is_refused(door: str, pairs: Pairs, name: str, tmp_path: Path) -> None:
    assert through(door, pairs, tmp_path) == ([], [f"{name} is given twice"])


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("pairs", ONCE.values(), ids=ONCE)
def test_keys_that_are_no_columns_may_be_there_twice(door: str, pairs: Pairs, tmp_path: Path) -> None:
    assert through(door, pairs, tmp_path) == ([dict(WHOLE)], [])


@pytest.mark.slow
@pytest.mark.spark
def test_a_pipeline_refuses_such_rows_too(spark: SparkSession, tmp_path: Path) -> None:
    from oop_engine.pipeline.declaration import load_declaration
    from oop_engine.pipeline.job import Wanted, run_pipeline

    lines = [*(as_json(pairs) for pairs, _ in TWICE.values()), *map(as_json, ONCE.values())]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    declared = ['name = "in"', 'format = "json"', "[columns]", 'ts = "int64"', 'v = "string"', "[stream]",
                'time = "ts"', 'unit = "s"', 'keep = ["v"]']  # fmt: skip
    (tmp_path / "in.toml").write_text("\n".join(declared))
    wanted = Wanted(
        load_declaration(tmp_path / "in.toml"), [tmp_path / "in.jsonl"], tmp_path / "out", until="parse"
    )
    told = run_pipeline(wanted, spark=spark)
    assert (told["rows"]["used"], told["quarantined"]) == (len(ONCE), {"has a column twice": len(TWICE)})
    raw = pq.read_table(tmp_path / "out" / "quarantine").column("raw").to_pylist()
    assert sorted(raw) == sorted(as_json(pairs).decode() for pairs, _ in TWICE.values())


@pytest.mark.parametrize(
    "body",
    [
        b'{"punctuation": {"below": 1}, "punctuation": {"below": 2}}',
        b'{"punctuation": {"below": 1, "below": 2}}',
        b'{"punctuation": {"groups": {"v": ["a"], "v": ["b"]}, "below": [1]}}',
    ],
)
def test_a_punctuation_that_has_a_key_twice_is_refused(body: bytes, tmp_path: Path) -> None:
    found, [reason] = read("jsonl", SCHEMA, body + b"\n")
    assert found == []
    assert "is given twice" in reason
    (tmp_path / "in.jsonl").write_bytes(body + b"\n")
    with pytest.raises(TraceError, match="is given twice"):
        list(open_trace(tmp_path / "in.jsonl", SCHEMA))


def test_a_punctuation_of_msgpack_that_has_a_key_twice_is_refused() -> None:
    packer = msgpack.Packer(autoreset=False)
    packer.pack_map_header(1)
    packer.pack("punctuation")
    packer.pack_map_pairs([("below", 1), ("below", 2)])
    found, [reason] = read("msgpack", SCHEMA, [packer.bytes()])
    assert (found, "below is given twice" in reason) == ([], True)


def test_a_column_may_be_called_punctuation(tmp_path: Path) -> None:
    rows = [{"ts": 1, "punctuation": "!"}, {"ts": 2, "punctuation": None}]
    told = {"punctuation": {"below": 2}}
    for name, packed in (("jsonl", [json.dumps(row).encode() for row in (*rows, told)]),
                         ("msgpack", [msgpack.packb(row) for row in (*rows, told)])):  # fmt: skip
        assert read(name, CALLED, packed) == ([*rows, Linear(2)], [])
        assert read(name, CALLED, packed[:1]) == ([rows[0]], [])
    graph = Graph("g")
    graph.sink("out", graph.source("in", CALLED))
    assert replay(graph, {"in": [*rows, told]}).results["out"].to_pylist() == rows
    path = tmp_path / "out.jsonl"
    write_trace(path, CALLED, [Page.of(CALLED, {"ts": [1, 2], "punctuation": ["!", None]}), Linear(2)])
    for trace in (open_trace(path, CALLED), open_trace(path, time="ts", unit="s")):
        [page, bound] = trace
        assert (page.to_pylist(), bound) == (rows, Linear(2))  # type: ignore[union-attr]


def test_a_row_with_another_key_of_that_name_is_a_row() -> None:
    row = {"ts": 1, "v": "a", "punctuation": {"below": 9}}
    for name, packed in (("jsonl", json.dumps(row).encode()), ("msgpack", msgpack.packb(row))):
        assert read(name, SCHEMA, [packed]) == ([{"ts": 1, "v": "a"}], [])


def test_a_time_that_is_called_punctuation_is_read() -> None:
    only = Schema({"punctuation": pa.int64()}, "punctuation", "s")
    for name, pack in (("jsonl", lambda row: json.dumps(row).encode()), ("msgpack", msgpack.packb)):
        found = read(name, only, [pack({"punctuation": 5}), pack({"punctuation": {"below": 4}})])
        assert found == ([{"punctuation": 5}, Linear(4)], [])
