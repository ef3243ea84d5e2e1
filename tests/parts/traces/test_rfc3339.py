"""Moments as texts: RFC 3339 in all that machines read, and other programs read them back."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from oop_engine import Page, Schema, open_trace, stream, write_trace
from oop_engine.connectors.formats.payloads import payloads_of
from oop_engine.core.groups.in_python import as_json, rows_of
from oop_engine.core.values.rfc3339 import moment_texts
from oop_engine.lab.report.words import plain

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ZONES = (None, "UTC", "+05:30", "Europe/London", "America/New_York")
SECONDS = (0, -1, 1_740_819_600, 1_751_360_400)  # winter and summer


def columns_of(unit: str, zone: str | None) -> Page:
    schema = Schema({"at": pa.timestamp(unit, zone), "k": pa.string()}, "at")
    moments = [second * UNITS[unit] + (unit != "s") for second in SECONDS]
    at = pa.array([*moments], pa.int64()).cast(schema.type_of("at"))
    return Page.from_arrow(schema, pa.table({"at": at, "k": ["a", "", None, "b"]}))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("unit", UNITS)
def test_every_text_is_of_rfc_3339_and_the_same_moment(tmp_path: Path, unit: str, zone: str | None) -> None:
    page = columns_of(unit, zone)
    texts = moment_texts(page.column("at")).to_pylist()
    for text, second in zip(texts, SECONDS, strict=True):
        moment = datetime.fromisoformat(text)
        assert (moment.replace(tzinfo=moment.tzinfo or UTC)).timestamp() // 1 == second
        assert (moment.tzinfo is None) == (zone is None)
        assert text[10] == "T"
        assert zone is None or text.endswith("Z") or text[-3] == ":"
    for form in ("csv", "jsonl"):
        path = tmp_path / f"rows.{form}"
        write_trace(path, page.schema, [page])
        found = path.read_text()
        rows = csv.DictReader(io.StringIO(found)) if form == "csv" else map(json.loads, found.splitlines())
        assert [row["at"] for row in rows] == texts
        [back] = open_trace(path, page.schema).pages()
        assert back.batch.equals(page.batch)
        path.write_text(found.replace("T", " "))  # as earlier versions wrote them
        [back] = open_trace(path, page.schema).pages()
        assert back.batch.equals(page.batch)
        messages = payloads_of(page, form)
        cells = [
            next(csv.reader([m.decode()]))[0] if form == "csv" else json.loads(m)["at"] for m in messages
        ]
        assert cells == texts


def test_values_of_python_and_of_nested_columns_too() -> None:
    moment = datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert json.loads(as_json({"at": moment, "in": [moment]})) == {
        "at": "2026-03-01T09:00:00Z",
        "in": ["2026-03-01T09:00:00Z"],
    }
    assert plain({"at": moment}) == {"at": "2026-03-01T09:00:00Z"}
    kind = pa.timestamp("ns", "UTC")
    nested = pa.array(
        [{"all": [1], "of": [("a", 1)]}, None],
        pa.struct({"all": pa.list_(kind), "of": pa.map_("string", kind)}),
    )
    found = [
        json.loads(as_json(row)) for row in rows_of(pa.table({"x": nested, "at": pa.array([1, None], kind)}))
    ]
    assert found[0]["at"][:20] == "1970-01-01T00:00:00."
    assert found[0]["x"]["all"][0][:20] == "1970-01-01T00:00:00."
    assert found[0]["x"]["of"][0][1][:20] == "1970-01-01T00:00:00."
    assert found[1] == {"x": None, "at": None}
    assert moment_texts(pa.array([-9 * 10**9], pa.timestamp("s", "Europe/London"))).to_pylist() == [
        "1684-10-19T08:00:00Z"  # there the offset was 75 seconds, which RFC 3339 cannot write
    ]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_pandas_reads_what_is_written(tmp_path: Path, form: str) -> None:
    page = columns_of("us", "UTC")
    path = tmp_path / f"rows.{form}"
    write_trace(path, page.schema, [page])
    read = pd.read_csv if form == "csv" else partial(pd.read_json, lines=True)
    found = pd.to_datetime(read(path)["at"])
    assert [round(moment.timestamp(), 6) for moment in found] == [second + 1e-6 for second in SECONDS]


@pytest.mark.parametrize("text", ["2026-03-01T12:00:02.800Z", "2026-03-01 12:00:02+05:30"])
def test_a_text_with_an_offset_in_a_column_without_a_zone_has_its_way_out(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"at,k\n{text},a\n")
    words = "it has an offset, and the column no zone: declare timestamp[us, tz=UTC], in SQL TIMESTAMPTZ"
    log = stream("log", {"at": "timestamp[us]", "k": "string"}).event_time("at", "5 s")
    outcome = log.run(path, bad_rows="count")
    assert [reason.endswith(words) for reason in outcome.refused["log"]] == [True]
    with_zone = stream("log", {"at": "timestamp[us, tz=UTC]", "k": "string"}).event_time("at", "5 s")
    assert with_zone.run(path).table.num_rows == 1
