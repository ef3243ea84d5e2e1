"""Dead letters: each record that is refused is kept as it came, with the place where it was."""

from __future__ import annotations

import base64
import csv
import io
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from oop_engine import Graph, Schema, open_trace, serve
from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.core.values.arrays import converted
from oop_engine.extend import LiveSource
from oop_engine.formats import CsvFormat
from oop_engine.runners.event_loop import run_async
from oop_engine.service.letters.record_reader import RecordReader
from oop_engine.sinks import Gathered
from oop_engine.sources import FileTail, Generated, GrowingFolder, Journal
from oop_engine.traces.formats.csv_cells import canonical
from oop_engine.traces.formats.csv_sniffed import csv_hint

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


@pytest.mark.slow(keep=2)
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


LINES = {
    "jsonl": [b'{"ts": 1, "key": "a"}', b'{"ts": "soon", "key": "b"}', b"{", b'{"ts": 2}', b"",
              b'{"punctuation": {"below": 1}}'],
    "csv": [b"1,a", b"soon,b", b"1,2,3", b"2,", b"", b"ts,key", b"key,ts", b"ts,other",
            b'5,"', b"7,the key", b"\xff,\xff"],
}  # fmt: skip


@pytest.mark.slow(keep=3)
@pytest.mark.parametrize("format", LINES)
@pytest.mark.parametrize("seed", range(12))
def test_records_are_found_by_numbers_of_rows_as_by_halves(format: str, seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    lines = draw.choices(LINES[format], k=60) if seed % 2 else draw.choices(LINES[format][:4], k=60)
    (tmp_path / "log").write_bytes(b"\n".join([b"ts,key"] * (format == "csv") + lines) + b"\n")
    found = served(FileTail(tmp_path / "log", format, follow=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordReader, "_bury", lambda *_: False)
        by_halves = served(FileTail(tmp_path / "log", format, follow=False))
    assert found[0] == by_halves[0]
    for one, other in zip(found[1], by_halves[1], strict=True):
        assert {**one, "at": 0} == {**other, "at": 0}


@pytest.mark.parametrize("many", [100, 1_000])
@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_file_of_which_nothing_can_be_read_is_read_once(
    format: str, many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    own = MESSAGE_FORMATS[format].read

    def read(self: Any, data: Any) -> Any:
        reads.append(len(data))
        return own(self, data)

    monkeypatch.setattr(MESSAGE_FORMATS[format], "read", read)
    rows = [ROWS[format](f"day {i}") for i in range(many)]
    (tmp_path / "log").write_bytes(b"\n".join([b"ts,key"] * (format == "csv") + rows) + b"\n")
    times, letters = served(FileTail(tmp_path / "log", format, follow=False))
    assert (times, len(letters)) == ([], many)
    assert len(reads) <= 30  # by halves: twice as many as rows


@pytest.mark.parametrize("door", ["file", "tail", "folder", "messages", "tcp"])
def test_a_refused_cell_of_csv_names_the_option_that_reads_it(door: str, tmp_path: Path) -> None:
    schema = Schema({"ts": pa.timestamp("s"), "v": pa.float64()}, "ts")
    given = CsvFormat(delimiter=";", decimal=".", dates="%Y-%m-%d")
    text = b"ts;v\n28.11.2026 07:30;1\n2026-11-28;1\n28/11/2026;1\n01/02/2026;1\n"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(text)
    if door == "file":
        trace = open_trace(tmp_path / "in" / "a.csv", schema, csv=given)
        assert [len(page) for page in trace.pages()] == [1]
        reasons = [*trace.refused]
    else:
        source = {
            "tail": lambda: FileTail(tmp_path / "in" / "a.csv", given, follow=False),
            "folder": lambda: GrowingFolder(tmp_path / "in", schema, follow=False, csv=given),
            "messages": lambda: Generated([text.splitlines()], given),
            "tcp": lambda: Generated([text], given),
        }[door]()
        graph = Graph("g")
        graph.sink("out", graph.source("in", schema))
        dead = Gathered()
        run_async(serve(graph, {"in": source}, {"out": Gathered()}, dead_letters=dead))
        reasons = [row["reason"] for row in dead.rows]
    assert [reason.split(": ", 1)[1] for reason in reasons] == [
        "cannot read '28.11.2026 07:30' as timestamp[s]; "
        'CsvFormat(dates=["%Y-%m-%d", "%d.%m.%Y %H:%M"]) reads it: --csv "dates=%Y-%m-%d|%d.%m.%Y %H:%M"',
        'cannot read \'28/11/2026\' as timestamp[s]; CsvFormat(dates=["%Y-%m-%d", "%d/%m/%Y"]) reads it: '
        '--csv "dates=%Y-%m-%d|%d/%m/%Y"',
        'cannot read \'01/02/2026\' as timestamp[s]; CsvFormat(dates=["%Y-%m-%d", "%d/%m/%Y"]) reads it: '
        '--csv "dates=%Y-%m-%d|%d/%m/%Y" or CsvFormat(dates=["%Y-%m-%d", "%m/%d/%Y"]) reads it: '
        '--csv "dates=%Y-%m-%d|%m/%d/%Y"',
    ]


@pytest.mark.parametrize(
    ("cell", "kind", "options"),
    [
        ("1,5", pa.float64(), {"decimal": ","}),
        ("1.234.567", pa.int64(), {"thousands": "."}),
        ("1 234,5", pa.float64(), {"thousands": " ", "decimal": ","}),
        ("1'000", pa.int32(), {"thousands": "'"}),
        ("28.11.2026, 7:30:01", pa.timestamp("s", "UTC"), {"dates": "%d.%m.%Y, %H:%M:%S"}),
        ("11/28/2026 3:05 PM", pa.timestamp("s"), {"dates": "%m/%d/%Y %I:%M %p"}),
        ("28.11.2026", pa.date32(), {"dates": "%d.%m.%Y"}),
        ("n/a", pa.int64(), None), ("soon", pa.timestamp("s"), None), ("28.11.26", pa.date32(), None),
        ("2.5", pa.int64(), None), ("1,5", pa.bool_(), None),
    ],
    ids=str,
)  # fmt: skip
def test_the_option_that_a_refusal_names_reads_the_cell(cell: str, kind: Any, options: Any) -> None:
    words = csv_hint(cell, kind, CsvFormat(delimiter=";"))
    if options is None:
        assert words == ""
        return
    typed = words.split('--csv "')[1].split('"')[0]
    assert CsvFormat.of(typed) == CsvFormat(**options)
    values, _ = converted(canonical(pa.array([cell]), kind, CsvFormat(**options)), kind)
    assert values[0].is_valid
