"""Dead letters: each record that is refused is kept as it came, with the place where it was."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from oop_engine import FileTail, Gathered, Generated, Graph, Journal, LiveSource, Schema, serve
from oop_engine.runners.event_loop import run_async

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string()}, "ts", "s")
BAD = {10, 11, 500, 998}


def through() -> Graph:
    graph = Graph("g")
    graph.sink("out", graph.source("in", SCHEMA))
    return graph


def served(source: Any) -> tuple[list[int], list[dict[str, Any]]]:
    """Return the times of the rows that went in, and the dead letters."""
    out, dead = Gathered(), Gathered()
    run_async(serve(through(), {"in": source}, {"out": out}, dead_letters=dead, signals=False))
    return [row["ts"] for row in out.rows], dead.rows


def as_json(ts: Any) -> bytes:
    return json.dumps({"ts": ts, "key": "é"}).encode()


def as_csv(ts: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([ts, "é, é"])
    return text.getvalue().encode()


def as_msgpack(ts: Any) -> bytes:
    found: bytes = msgpack.packb({"ts": ts, "key": "é"})
    return found


def as_object(ts: Any) -> Any:
    return {"ts": ts, "key": "é"}


ROWS = {"jsonl": as_json, "csv": as_csv, "msgpack": as_msgpack, "rows": as_object}


def items(format: str) -> list[Any]:
    return [ROWS[format]("soon" if ts in BAD else ts) for ts in range(1_000)]


@pytest.mark.parametrize("at_once", [1, 7, 1_000])
@pytest.mark.parametrize("format", ROWS)
def test_a_record_that_is_refused_is_kept_as_it_came(format: str, at_once: int, tmp_path: Path) -> None:
    there = items(format)

    async def feed() -> AsyncIterator[Any]:
        for at in range(0, len(there), at_once):
            yield there[at : at + at_once] if at_once > 1 or format != "rows" else there[at]

    source: LiveSource = Generated(feed(), format)
    for each in (source, Journal(Generated(feed(), format), tmp_path)):
        times, letters = served(each)
        assert times == [ts for ts in range(1_000) if ts not in BAD]
        raw = [
            base64.b64decode(each["record"])
            if each["coding"] == "base64"
            else json.loads(each["record"])
            if each["coding"] == "json"
            else each["record"].encode()
            for each in letters
        ]
        assert raw == [there[ts] for ts in sorted(BAD)]
        assert {each["coding"] for each in letters} <= {"text", "base64", "json"}
        if each is source:
            assert [found(json.loads(letter["position"]), at_once) for letter in letters] == sorted(BAD)


def found(place: Any, at_once: int) -> int:
    """Return the number of a row, by a place behind so many items."""
    behind, skipped = (place["behind"], place["record"]) if isinstance(place, dict) else (place, 0)
    return (behind or 0) * at_once + skipped


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_line_of_a_file_is_found_by_its_byte(format: str, tmp_path: Path) -> None:
    """Also behind a line of names, in data that are read again line by line."""
    path, lines = tmp_path / "log", items(format)
    if format == "csv":
        lines[300:300] = [b"key,ts", b"a,1", b'"x",3,4', b"ts,key"]  # the order of columns changes, and back
    path.write_bytes(b"\n".join(lines) + b"\n")
    times, letters = served(FileTail(path, format, follow=False))
    assert len(times) == 1_000 - len(BAD) + (format == "csv")
    assert len(letters) == len(BAD) + (format == "csv")
    for letter in letters:
        place = json.loads(letter["position"])
        assert path.read_bytes()[place["byte"] :].partition(b"\n")[0] == letter["record"].encode()
        assert place["file"] == str(path)


def test_of_a_record_of_many_rows_only_those_that_are_refused_are_named() -> None:
    payload = msgpack.packb([{"ts": 1, "key": "a"}, {"ts": "soon", "key": "b"}])

    async def feed() -> AsyncIterator[Any]:
        yield payload

    times, [letter] = served(Generated(feed(), "msgpack"))
    assert times == [1]
    assert (letter["coding"], letter["rows"]) == ("part", 1)
    assert "soon" in letter["record"]


def test_a_misspelt_column_is_told_with_the_first_row(caplog: pytest.LogCaptureFixture) -> None:
    async def feed() -> AsyncIterator[Any]:
        yield {"ts": 1, "key": "a", "hots": "b"}
        assert (
            "rows have 'hots', which the schema has not (left out, and counted); it has ts, key"
            in caplog.text
        )
        yield {"ts": 2, "key": "a", "hots": "b"}

    served(feed())
    assert caplog.text.count("hots") == 1
