"""Rows that are written alike: a kernel reads them as the other readers do, and leaves all others to these."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Schema, open_trace
from oop_engine.core.page import Page
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.formats.alike import block
from oop_engine.traces.formats.alike.csv import csv_alike
from oop_engine.traces.formats.alike.json_lines import json_alike
from oop_engine.traces.formats.json_rows import rows_of
from tests.fuzz import SCALE

COLUMNS = {
    "ts": pa.int64(), "name": pa.string(), "x": pa.float64(), "n": pa.int8(), "u": pa.uint64(), "day": pa.date32(),
    "at": pa.timestamp("us"),
}  # fmt: skip
SCHEMA = Schema(COLUMNS, "ts", "ms")
NUMBERS = (
    "0", "-0", "+5", "007", "-7", "127", "128", "-128", "-129", "1.0", "1.5", ".5", "5.", "1e3", "0.1", "-0.0",
    "0.30000000000000004", "123456789012345.1", "12345678901234567", "999999999999999999", "1000000000000000000",
    "9223372036854775807", "9223372036854775808", "18446744073709551615", "-1", "4611686018427387904", "1_000", "1 000",
    " 5", "5 ", "0x1F", "nan", "inf", "true", "-", "--1", "٣",
)  # fmt: skip
TEXTS = (
    "",
    "a",
    "NA",
    "null",
    "None",
    "é",
    "日本",
    "a b",
    " a ",
    "a'b",
    "a;b",
    "-",
    "\u2028",
    "a\tb",
    "\x00",
    "\x7f",
    "x" * 300,
)
CELLS = (
    "",
    "NA",
    "null",
    '""',
    '"a"',
    '"5"',
    '"',
    'a"b',
    '"a""b"',
    '"a,b"',
    '"a\nb"',
    "a,b",
    "\r",
    '"5" ',
    *NUMBERS,
    *TEXTS,
)


def json_line(**other: str) -> str:
    cells = {
        "ts": "7",
        "name": '"a"',
        "x": "1.5",
        "n": "-3",
        "u": "9",
        "day": '"2024-05-01"',
        "at": '"2024-05-01T12:00:00"',
    }
    return "{" + ", ".join(f'"{key}": {value}' for key, value in (cells | other).items()) + "}\n"


def json_blocks() -> Iterator[bytes]:
    odd = [
        json_line(**{name: value})
        for name in ("ts", "x", "n", "u")
        for value in (*NUMBERS, "null", "{}", '"5"')
    ]
    odd += [json_line(name=f'"{text}"') for text in TEXTS]
    odd += [
        json_line(name=value)
        for value in ("5", "null", "true", '["a"]', r'"a\"b"', r'"\u00e9"', r'"a\\"', '"a')
    ]
    odd += [json_line(day=value) for value in ('"2024-02-30"', '"x"', "null", '""')]
    odd += [json_line(more=value) for value in ("1", '"a"', "null", "1.5", "1e5", "-", '{"a": 1}', "true")]
    odd += [
        json_line().replace(", ", ","),
        json_line().replace(": ", ":"),
        json_line().replace("}\n", "} \r\n"),
        "\n",
        "  \n",
    ]
    odd += [
        json_line(ts='1, "ts": 2'),
        '{"ts": 1}\n',
        "{}\n",
        "[]\n",
        "5\n",
        "{\n",
        json_line() * 2,
        json_line()[:-1] + json_line(),
    ]
    odd += [json_line().replace('"x"', '"\\u0078"'), json_line().replace('"x"', '"é"'), json_line() + "x"]
    usual = [json_line(ts=str(i), name=f'"k{i}"', x=f"{i}.25") for i in range(6)]
    for line in odd:
        for at in (0, 3, 6):
            yield "".join([*usual[:at], line, *usual[at:]]).encode()
        yield (line * 3).encode()
    whole = "".join(usual).encode()
    yield whole
    yield whole[:-1]
    yield whole.replace(b"k3", b"k\xff3")
    yield whole.replace(b"\n", b"\r\n")


def json_rows(lines: bytes, names: list[str], *, alike: bool) -> tuple[list[dict[str, Any]], dict[str, int]]:
    counts: dict[str, int] = {}

    def other(name: str, rows: int) -> None:
        if name not in names:
            counts[name] = counts.get(name, 0) + rows

    fields = pa.schema([(name, COLUMNS[name]) for name in names])
    batches = list(rows_of(lines, fields, other, alike=alike))
    return [row for batch in batches for row in batch.to_pylist()], counts


@pytest.mark.parametrize("names", [list(COLUMNS), ["name", "ts"], ["x"]], ids=["all", "two", "one"])
def test_lines_of_json_mean_the_same_to_the_kernel(names: list[str]) -> None:
    for lines in json_blocks():
        assert json_rows(lines, names, alike=True) == json_rows(lines, names, alike=False), lines


def test_the_kernel_reads_lines_of_json() -> None:
    lines = "".join(json_line(ts=str(i)) for i in range(5)).encode()
    fields = pa.schema([("ts", pa.int64()), ("name", pa.large_string()), ("gone", pa.int8())])
    table = json_alike(lines, fields, None)
    assert table is not None
    assert table.schema == fields
    assert table.to_pydict() == {"ts": [0, 1, 2, 3, 4], "name": ["a"] * 5, "gone": [None] * 5}


def csv_line(**other: str) -> str:
    cells = {
        "ts": "7",
        "name": "a",
        "x": "1.5",
        "n": "-3",
        "u": "9",
        "day": "2024-05-01",
        "at": "2024-05-01T12:00:00",
    }
    return ",".join((cells | other).values()) + "\n"


def csv_files() -> Iterator[bytes]:
    header = ",".join(COLUMNS) + "\n"
    usual = [csv_line(ts=str(i), name=f"k{i}", x=f"{i}.25") for i in range(6)]
    odd = [csv_line(**{name: cell}) for name in COLUMNS for cell in CELLS]
    odd += [
        "\n",
        " \n",
        "1,2\n",
        csv_line()[:-1] + ",9\n",
        "#" + csv_line(),
        csv_line().replace("\n", "\r\n"),
    ]
    odd += [csv_line(name='"a"', day='"2024-05-01"'), csv_line(day="2024-02-30"), csv_line(at="99999-01-01")]
    for line in odd:
        for at in (0, 3, 6):
            yield "".join([header, *usual[:at], line, *usual[at:]]).encode()
    yield from csv_wholes(header, usual)


def csv_wholes(header: str, usual: list[str]) -> Iterator[bytes]:
    whole = "".join([header, *usual]).encode()
    yield whole
    yield whole[:-1]
    yield whole.replace(b"k3", b"k\xff3")
    yield whole.replace(b"\n", b"\r\n")
    yield "".join([header, *(csv_line(name=f'"k{i}"') for i in range(6))]).encode()


def csv_rows(path: Path, schema: Schema | None, format: CsvFormat | None) -> str:
    refused: list[Any] = []
    trace = open_trace(
        path, schema, time=None if schema else "ts", unit=None if schema else "ms", csv=format,
        on_refused=lambda number, rows, reason: refused.append((number, rows.schema, rows.to_pylist(), reason)),
    )  # fmt: skip
    trace.counts_unknown = True
    rows = [row for page in trace if isinstance(page, Page) for row in page.to_pylist()]
    return repr((rows, trace.schema, refused, trace.refused, trace.nulls, trace.unknown))


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize(
    ("schema", "format"),
    [(SCHEMA, None), (None, None), (Schema({"at": pa.timestamp("us"), "name": pa.string()}, "at"), None),
     (SCHEMA, CsvFormat(quote="")), (SCHEMA, CsvFormat(nulls=("a",))), (SCHEMA, CsvFormat(comment="#"))],
    ids=["schema", "guessed", "two columns", "no quotes", "words for null", "comments"],
)  # fmt: skip
def test_csv_means_the_same_to_the_kernel(
    schema: Schema | None, format: CsvFormat | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, files = tmp_path / "rows.csv", list(csv_files())
    usual = schema is SCHEMA and format is None
    for data in random.Random(7).sample(files, (150 if usual else 40) * SCALE) if SCALE < 8 else files:
        path.write_bytes(data)
        found = []
        for least in (0, 1 << 40):
            monkeypatch.setattr(block, "_AFTER", least)
            monkeypatch.setattr(block, "_LEAST_BYTES", min(least, 1))
            try:
                found.append(csv_rows(path, schema, format))
            except Exception as error:  # both must raise it
                found.append(repr(error))
        assert found[0] == found[1], data


def test_a_row_that_is_too_long_is_refused_by_the_kernel_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, reasons = tmp_path / "rows.csv", []
    for module in ("csv", "csv_rows"):
        monkeypatch.setattr(f"oop_engine.traces.formats.{module}.LONGEST", 1000)
    monkeypatch.setattr(block, "_LEAST_BYTES", 1)
    lines = [csv_line(ts=str(i), name="z" * (1000 if i == 2 else 5)) for i in range(5)]
    path.write_text("".join([",".join(COLUMNS) + "\n", *lines]))
    for least in (0, 1 << 40):
        monkeypatch.setattr(block, "_AFTER", least)
        trace = open_trace(path, SCHEMA)
        assert sum(map(len, trace.pages())) == 4
        reasons.append(trace.refused)
    assert reasons == [{"a row must be shorter than 1,000 bytes (first in line 4)": 1}] * 2


def test_the_kernel_reads_csv() -> None:
    lines = "".join(csv_line(ts=str(i), x="", name='"a,b"') for i in range(5)).encode()
    batch = csv_alike(lines, list(COLUMNS), SCHEMA.fields, {"ts"}, CsvFormat())
    assert batch is not None
    assert batch.schema.types == SCHEMA.fields.types
    assert batch.column("x").null_count == 5
    assert batch.column("name").to_pylist() == ["a,b"] * 5
    assert csv_alike(lines, list(COLUMNS), SCHEMA.fields, {"ts", "x"}, CsvFormat()) is None


def test_the_kernel_waits_until_it_is_worth_its_loading() -> None:
    seen = block.Seen()
    assert not seen.enough(b"x" * 1000)
    assert not block.Seen().enough(b"")
