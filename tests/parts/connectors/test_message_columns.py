"""Columns of messages: what a server tells of a message beside its payload, in all formats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from oop_engine import Graph, Schema, UsageError, serve
from oop_engine.connectors.formats.payloads import payloads_of
from oop_engine.connectors.payload import Payload
from oop_engine.connectors.sources.file_tail import FileTail
from oop_engine.core.page import Page
from oop_engine.extend import LiveSource
from oop_engine.operators import Ordered, Punctuate
from oop_engine.sinks import Gathered, PartFiles
from oop_engine.sources import GrowingFolder, Journal

PLAIN = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
TOLD = Schema({**dict(zip(PLAIN.names, PLAIN.fields.types, strict=True)), "_offset": pa.int64(),
               "_key": pa.string(), "_headers": pa.map_(pa.string(), pa.string())}, "ts", "s")  # fmt: skip
BINARY = pa.binary()


class Messages(LiveSource):
    """Messages of a server that numbers them; ``None`` is one without a payload."""

    replayable = True
    metadata = MappingProxyType(
        {"_offset": pa.int64(), "_key": BINARY, "_headers": pa.map_(pa.string(), BINARY), "_null": pa.bool_(),
         "_time": pa.timestamp("ms", "UTC")}
    )  # fmt: skip

    def __init__(self, format: str, *payloads: bytes | None) -> None:
        self.format, self._payloads = format, payloads

    async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
        found: list[bytes] = []
        for number, payload in enumerate(self._payloads):
            about = {"_offset": number, "_key": b"k%d" % number, "_headers": [("a", b"1"), ("a", b"2")],
                     "_null": payload is None, "_time": 1000 * number}  # fmt: skip
            found.append(Payload(payload, about) if self.wanted else payload or b"")
        yield found[:2], 2
        yield found[2:], len(found)


def rows(source: LiveSource, schema: Schema, dead: Path | None = None) -> list[dict[str, Any]]:
    graph, results = Graph("told"), Gathered()
    graph.sink("out", graph.add("edge", Punctuate(Ordered()), graph.source("in", schema)))
    letters = None if dead is None else PartFiles(dead, "jsonl")
    asyncio.run(serve(graph, {"in": source}, {"out": results}, dead_letters=letters))
    return results.rows


@pytest.mark.parametrize("format", ["jsonl", "csv", "msgpack"])
def test_each_row_has_the_columns_of_its_message(format: str) -> None:
    payloads = payloads_of(Page.of(PLAIN, {"ts": [1, 2, 3], "key": ["a", None, "c"]}), format)
    found = rows(Messages(format, *payloads), TOLD)
    assert [(row["ts"], row["_offset"], row["_key"]) for row in found] == [
        (1, 0, "k0"),
        (2, 1, "k1"),
        (3, 2, "k2"),
    ]
    assert found[0]["_headers"] == [("a", "1"), ("a", "2")]
    assert [row["ts"] for row in rows(Messages(format, *payloads), PLAIN)] == [1, 2, 3]


def test_all_rows_of_a_message_have_its_columns() -> None:
    pages = [Page.of(PLAIN, {"ts": ts, "key": ["a"] * len(ts)}) for ts in ([1, 2], [], [3])]
    found = rows(Messages("arrow", *(payloads_of(page, "arrow")[0] for page in pages)), TOLD)
    assert [(row["ts"], row["_offset"]) for row in found] == [(1, 0), (2, 0), (3, 2)]
    several = msgpack.packb([{"ts": 1}, {"ts": 2}])
    found = rows(Messages("msgpack", several, b"\xc1", msgpack.packb({"ts": 3})), TOLD)
    assert [(row["ts"], row["_offset"]) for row in found] == [(1, 0), (2, 0), (3, 2)]
    found = rows(Messages("csv", b"key,ts\n", b"a,1\nb,2", b"\n", b"c,3\r\n"), TOLD)
    assert [(row["ts"], row["key"], row["_offset"]) for row in found] == [
        (1, "a", 1),
        (2, "b", 1),
        (3, "c", 3),
    ]


def test_json_messages_that_are_no_row_move_no_column() -> None:
    sent = (
        b'{"ts": 1}',
        b" ",
        b'{"punctuation": {"below": 1}}',
        b"no",
        b'{"ts":\n 2}',
        b'{"ts": "x"}',
        b'{"ts": 3}',
    )
    assert [(row["ts"], row["_offset"]) for row in rows(Messages("jsonl", *sent), TOLD)] == [
        (1, 0),
        (2, 4),
        (3, 6),
    ]


@pytest.mark.parametrize("format", ["jsonl", "csv", "msgpack", "arrow"])
def test_a_row_that_has_a_column_of_the_message_is_refused(format: str, tmp_path: Path) -> None:
    schema = Schema({"ts": pa.int64(), "_key": pa.string(), "_offset": pa.int64()}, "ts", "s")
    theirs = Schema({"ts": pa.int64(), "_key": pa.string()}, "ts", "s")
    payloads = payloads_of(Page.of(theirs, {"ts": [1], "_key": ["mine"]}), format)
    good = payloads_of(Page.of(PLAIN.select(["ts"]), {"ts": [2]}), format)
    header = [b"ts,_key\n"] if format == "csv" else []
    assert [row["ts"] for row in rows(Messages(format, *good, *header, *payloads), schema, tmp_path)] == [2]
    letters = [
        json.loads(line) for file in tmp_path.glob("*.jsonl") for line in file.read_text().splitlines()
    ]
    assert "_key is a column of the message" in letters[0]["reason"]


@pytest.mark.parametrize("format", ["jsonl", "csv", "msgpack", "arrow"])
def test_a_message_without_a_payload_is_a_row_of_its_columns(format: str) -> None:
    kinds = {"_time": pa.timestamp("us", "UTC"), "_null": pa.bool_(), "_key": BINARY, "n": pa.int64()}
    theirs = Schema({"n": pa.int64()}, "n", "rows")
    payloads = [payloads_of(Page.of(theirs, {"n": [n]}), format)[0] for n in (7, 8)]
    found = rows(Messages(format, payloads[0], None, payloads[1]), Schema(kinds, "_time"))
    assert [(row["n"], row["_null"], row["_key"]) for row in found] == [
        (7, False, b"k0"), (None, True, b"k1"), (8, False, b"k2")
    ]  # fmt: skip


def test_a_column_of_another_type_is_told_before_anything_is_read() -> None:
    schema = Schema({"ts": pa.int64(), "_offset": pa.timestamp("s")}, "ts", "s")
    with pytest.raises(
        UsageError, match=r"column '_offset' comes from the message, as int64; got timestamp\[s\]"
    ):
        rows(Messages("jsonl"), schema)


def test_a_value_that_the_declared_type_has_not_is_a_dead_letter() -> None:
    schema = Schema({"ts": pa.int64(), "_key": pa.int64()}, "ts", "s")
    assert rows(Messages("jsonl", b'{"ts": 1}'), schema) == []


def test_a_header_that_is_no_text_is_a_dead_letter(tmp_path: Path) -> None:
    class Odd(Messages):
        async def read(self, position: Any) -> AsyncIterator[tuple[Any, Any]]:
            about = [{"_headers": [("a", b"1"), ("b", value)]} for value in (b"2", b"\xff", b"3")]
            yield [Payload(b'{"ts": %d}' % n, each) for n, each in enumerate(about)], 3

    schema = Schema({"ts": pa.int64(), "_headers": pa.map_(pa.string(), pa.string())}, "ts", "s")
    assert [row["ts"] for row in rows(Odd("jsonl"), schema, tmp_path)] == [0, 2]
    [letter] = [
        json.loads(line) for part in tmp_path.glob("*.jsonl") for line in part.read_text().splitlines()
    ]
    assert letter["reason"] == "_headers: cannot read its values as map<string, string>"
    schema = Schema({"ts": pa.int64(), "_headers": pa.map_(pa.string(), BINARY)}, "ts", "s")
    assert [row["_headers"][1][1] for row in rows(Odd("jsonl"), schema)] == [b"2", b"\xff", b"3"]


def test_a_journal_keeps_the_columns_of_messages(tmp_path: Path) -> None:
    sent = [b'{"ts": 1}', b'{"ts": 2}', b'{"ts": 3}']
    first = rows(Journal(Messages("jsonl", *sent), tmp_path / "journal"), TOLD)
    again = rows(Journal(Messages("jsonl"), tmp_path / "journal"), TOLD)
    assert [row["_offset"] for row in first] == [0, 1, 2]
    assert again[:3] == first


def test_files_tell_their_name(tmp_path: Path) -> None:
    schema = Schema({"ts": pa.int64(), "_file": pa.dictionary(pa.int32(), pa.string())}, "ts", "s")
    (tmp_path / "in").mkdir()
    for ts in (1, 2):
        (tmp_path / "in" / f"{ts}.jsonl").write_text(f'{{"ts": {ts}}}\n')
    found = rows(GrowingFolder(tmp_path / "in", schema, follow=False), schema)
    assert [(row["ts"], Path(row["_file"]).name) for row in found] == [(1, "1.jsonl"), (2, "2.jsonl")]
    log = tmp_path / "log.jsonl"
    log.write_text('{"ts": 1}\nno\n{"ts": 2}\n')
    found = rows(FileTail(log, follow=False), schema, tmp_path / "dead")
    assert [(row["ts"], row["_file"]) for row in found] == [(1, str(log)), (2, str(log))]
