"""CSV as it is out there: one ``CsvFormat`` for traces and live sources, and the same rows wherever reads are cut."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Page, Schema, UsageError, open_trace, serve
from oop_engine.connectors.formats.csv_messages import CsvMessages
from oop_engine.errors import TraceError
from oop_engine.formats import CsvFormat
from oop_engine.runners.event_loop import run_async
from oop_engine.sinks import Gathered
from oop_engine.sources import FileTail
from oop_engine.traces.formats import csv as csv_trace

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "x": pa.float64()}, "ts", "s")
HEAD = b"ts,k,x\n"


def traced(path: Any, data: bytes, csv: CsvFormat | None = None, schema: Schema = SCHEMA) -> Any:
    """Return the rows of a file, and how many were refused."""
    path.write_bytes(data)
    trace = open_trace(path, schema, csv=csv)
    rows = [tuple(row.values()) for page in trace.pages() for row in page.to_pylist()]
    return rows, sum(trace.refused.values())


def live(pieces: Any, csv: CsvFormat | None = None, schema: Schema = SCHEMA, **options: Any) -> Any:
    """Return the rows of some messages, and how many were refused."""
    refused: list[int] = []
    made = CsvMessages(schema, "source 'in'", lambda reason, text, rows: refused.append(rows), csv, **options)
    pages = [m for piece in pieces for m in made.messages(piece) if isinstance(m, Page)]
    return [tuple(row.values()) for page in pages for row in page.to_pylist()], sum(refused)


A, B, C = (1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0)
ROWS: dict[str, tuple[bytes, list[Any], int]] = {
    "plain": (b"1,a,1\n2,b,2\n", [A, B], 0),
    "no final line feed": (b"1,a,1\n2,b,2", [A, B], 0),
    "carriage returns": (b"1,a,1\r\n2,b,2\r\n", [A, B], 0),
    "lone carriage returns": (b"1,a,1\r2,b,2\n", [A, B], 0),
    "blank lines": (b"\n1,a,1\n\r\n  \n2,b,2\n", [A, B], 0),
    "quotes": (b'"1","a","1"\n2,"b",2\n', [A, B], 0),
    "a quote, a delimiter in quotes": (b'1,"x, ""y""",1\n2,b,2\n', [(1, 'x, "y"', 1.0), B], 0),
    "a quote in a cell": (b'1,5" disk,1\n2,b,2\n', [(1, '5" disk', 1.0), B], 0),
    "null and empty": (b'1,,1\n2,"",\n', [(1, None, 1.0), (2, "", None)], 0),
    "null in quotes": (b'1,NA,NA\n2,"NA",2\n', [(1, "NA", None), (2, "NA", 2.0)], 0),
    "nul bytes": (b"1,a\x00b,1\n2,b,2\n", [(1, "a\x00b", 1.0), B], 0),
    "too few, too many": (b"1,a,1\n9,z\n2,b,2\n9,z,9,9\n3,c,3\n", [A, B, C], 2),
    "a delimiter behind": (b"1,a,1,\n2,b,2\n", [B], 1),
    "a quote that opens": (b'1,a,1\n9,"5 inch,1\n2,b,2\n3,c,3\n', [A, B, C], 1),
    "a quote that opens last": (b'1,a,1\n9,a,"1\n2,b,2\n', [A, B], 1),
    "a quote in a cell, and one that opens": (b'1,a,1\n9,a","b,1\n2,b,2\n', [A, B], 1),
    "two such quotes": (b'1,a,1\n9,"z,1\n2,b,2\n9,"z,1\n3,c,3\n', [A, B, C], 2),
    "such a quote before quoted rows": (b'1,a,1\n"9","z,"1\n"2","b","2"\n', [A, B], 1),
    "text behind a quote": (b'1,a,1\n9,"z"y,1\n2,b,2\n', [A, B], 1),
    "no utf-8": (b"1,a,1\n9,\xff,1\n2,b,2\n", [A, B], 1),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_is_none_is_refused_alone_wherever_reads_are_cut(tmp_path, monkeypatch, name) -> None:
    data, rows, refused = ROWS[name]
    assert live([HEAD + data]) == (rows, refused)
    lines = data.splitlines(keepends=True)
    assert live([HEAD, *lines]) == (rows, refused)
    if "carriage" not in name:
        assert live([[HEAD.strip(), *(line.rstrip(b"\n") for line in lines)]]) == (rows, refused)
    for block in (1, 2, 3, 5, 7, 11, 1 << 20):
        monkeypatch.setattr(csv_trace, "_BLOCK", block) if block < 1 << 20 else monkeypatch.undo()
        if block > len(HEAD) or block == 1 << 20:
            assert traced(tmp_path / "a.csv", HEAD + data) == (rows, refused), block


MANY_LINES = {
    "read": (b'1,"two\nlines",1\n2,b,2\n', [(1, "two\nlines", 1.0), B], 0, 2),
    "carriage returns": (b'1,"two\r\nlines",1\r\n2,b,2\r\n', [(1, "two\r\nlines", 1.0), B], 0, 2),
    "a blank line within": (b'1,"two\n\nlines",1\n2,b,2\n', [(1, "two\n\nlines", 1.0), B], 0, 2),
    "three, and a quote": (b'1,"a\n""b""\nc",1\n2,b,2\n', [(1, 'a\n"b"\nc', 1.0), B], 0, 3),
}


@pytest.mark.parametrize("name", MANY_LINES)
def test_cells_of_several_lines(tmp_path, monkeypatch, name) -> None:
    data, rows, refused, lines = MANY_LINES[name]
    whole = traced(tmp_path / "a.csv", HEAD + data)
    assert whole == (rows, refused)
    for block in (8, 9, 13):
        monkeypatch.setattr(csv_trace, "_BLOCK", block)
        assert traced(tmp_path / "a.csv", HEAD + data) == whole
    # A stream is read by lines: each line of such a cell is refused.  A payload is whole.
    by_lines = live([HEAD + data])
    assert by_lines == live([HEAD, *data.splitlines(keepends=True)]) == ([B], lines)
    first, _, second = data.rpartition(b"2,b")
    assert live([HEAD, [first, b"2,b" + second]]) == (rows, 0)


FORMATS: dict[str, tuple[bytes, CsvFormat | None, list[Any]]] = {
    "semicolons, sniffed": (b"ts;k;x\n1;a;1\n2;b;2\n", None, [A, B]),
    "tabs, sniffed": (b"ts\tk\tx\n1\ta\t1\n2\tb\t2\n", None, [A, B]),
    "bars, another order": (b"x|ts|k\n1|1|a\n2|2|b\n", None, [A, B]),
    "a mark": (b"\xef\xbb\xbfts,k,x\n1,a,1\n", None, [A]),
    "a mark, quotes, another order": (b'\xef\xbb\xbf"x","k","ts"\n1,a,1\n', None, [A]),
    "decimal comma": (b"ts;k;x\n1;a;1,5\n2;b;-0,25\n", CsvFormat(delimiter=";", decimal=","),
                      [(1, "a", 1.5), (2, "b", -0.25)]),
    "thousands": (b"ts;k;x\n1;a;1.234.567,5\n1.002;b;-2\n", CsvFormat(delimiter=";", decimal=",", thousands="."),
                  [(1, "a", 1234567.5), (1002, "b", -2.0)]),
    "thousands in quotes": (b'ts,k,x\n1,a,"1,234.5"\n', CsvFormat(thousands=","), [(1, "a", 1234.5)]),
    "latin-1": ("ts,k,x\n1,é,1\n".encode("latin-1"), CsvFormat(encoding="latin-1"), [(1, "é", 1.0)]),
    "nulls": (b'ts,k,x\n1,-,-\n2,"-",2\n', CsvFormat(nulls=("-",)), [(1, None, None), (2, "-", 2.0)]),
    "comments": (b"# of today\nts,k,x\n#1,z,1\n1,a,1\n", CsvFormat(comment="#"), [A]),
    "no header": (b"1,a,1\n2,b,2\n", CsvFormat(header=False), [A, B]),
    "no header, names": (b"a,1,1,z\n", CsvFormat(header=False, names=("k", "x", "ts", "more")), [(1, "a", 1.0)]),
    "another quote": (b"ts,k,x\n1,'it''s',1\n", CsvFormat(quote="'"), [(1, "it's", 1.0)]),
    "no quote": (b'ts,k,x\n1,"a,1\n', CsvFormat(quote=""), [(1, '"a', 1.0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_files_and_streams_are_read_as_they_are_written(tmp_path, name) -> None:
    data, csv, rows = FORMATS[name]
    assert traced(tmp_path / "a.csv", data, csv) == (rows, 0)
    for in_file in (False, True):
        assert live([data], csv, in_file=in_file, by_lines=True) == (rows, 0)
        assert live(data.splitlines(keepends=True), csv, in_file=in_file) == (rows, 0)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_marks_and_zeros_tell_the_encoding(tmp_path, encoding) -> None:
    text = "ts;k;x\r\n" + "1;ä;1,5\r\n" * 3
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    data = mark + text.encode(encoding)
    assert traced(tmp_path / "a.csv", data) == ([(1, "ä", 1.5)] * 3, 0)
    if encoding == "utf-16-le":
        with pytest.raises(UsageError, match="read by lines; got encoding 'utf-16'"):
            live([data], CsvFormat(encoding="utf-16"), by_lines=True)


TIMES = Schema({"ts": pa.timestamp("s", "UTC"), "k": pa.string()}, "ts")


@pytest.mark.parametrize(
    ("text", "csv", "wanted"),
    [
        ("31.12.2026 23:59:59", None, "2026-12-31T23:59:59"),
        ("1.2.2026 3:04", None, "2026-02-01T03:04:00"),
        ("31/12/2026 00:00:01", None, "2026-12-31T00:00:01"),
        ("12/31/2026", None, "2026-12-31T00:00:00"),
        ("31/Dec/2026:23:59:59 +0100", None, "2026-12-31T22:59:59"),
        ("03/04/2026", None, None),
        ("03/04/2026", CsvFormat(dates="%m/%d/%Y"), "2026-03-04T00:00:00"),
        ("12/31/2026 12:00:01 AM", CsvFormat(dates="%m/%d/%Y %I:%M:%S %p"), "2026-12-31T00:00:01"),
        ("31.12.26", CsvFormat(dates="%d.%m.%Y"), None),
        ("31.12.2026 23:59:59", CsvFormat(zone="Europe/Berlin"), "2026-12-31T22:59:59"),
        ("2026-07-01T12:00:00", CsvFormat(zone="Europe/Berlin"), "2026-07-01T10:00:00"),
        ("2026-07-01T12:00:00Z", CsvFormat(zone="Europe/Berlin"), "2026-07-01T12:00:00"),
        ("31.03.2024 02:30:00", CsvFormat(zone="Europe/Berlin"), None),  # the clocks skip it
        ("27.10.2024 02:30:00", CsvFormat(zone="Europe/Berlin"), None),  # the clocks show it twice
    ],
)
def test_local_dates(tmp_path, text, csv, wanted) -> None:
    rows, refused = traced(tmp_path / "a.csv", f"ts,k\n{text},a\n".encode(), csv, TIMES)
    found = [row[0].replace(tzinfo=None).isoformat() for row in rows]
    assert (found, refused) == (([], 1) if wanted is None else ([wanted], 0))


@pytest.mark.parametrize("header", [b"V,TS", b"v,time", b"price,time", b"v", b"v,v,ts,ts"])
def test_rows_below_a_header_of_others_are_not_read_by_position(tmp_path, header) -> None:
    schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
    data = header + b"\n500,1\n600,2\n"
    with pytest.raises(TraceError, match=r"no column|must differ"):
        traced(tmp_path / "a.csv", data, schema=schema)
    with pytest.raises(
        TraceError, match=r"the first line (must have the names of the columns|has '(ts|v)' twice)"
    ):
        live([data], schema=schema, in_file=True)
    if header == b"v,v,ts,ts":
        assert live([data], schema=schema) == ([], 3)
    if header == b"v,time":  # of a stream without a beginning, too, until a header comes
        assert live([data], schema=schema) == ([], 3)
        assert live([data, b"v,ts\n7,8\n"], schema=schema) == ([(8, 7)], 3)


def test_columns_that_nobody_reads_may_have_one_name(tmp_path) -> None:
    schema = Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s")
    data = b"v,,x,ts,x,\n500,,7,1,8,\n"
    assert traced(tmp_path / "a.csv", data, schema=schema) == ([(1, 500)], 0)
    assert live([data], schema=schema, in_file=True) == ([(1, 500)], 0)


def test_a_zone_needs_columns_with_a_zone(tmp_path) -> None:
    schema = Schema({"ts": pa.timestamp("s"), "k": pa.string()}, "ts")
    csv = CsvFormat(zone="Europe/Berlin")
    with pytest.raises(TraceError, match=r"'ts' is .*without a zone: declare timestamp.s, UTC"):
        traced(tmp_path / "a.csv", b"ts,k\n2026-03-01T09:00:00,a\n", csv, schema)
    with pytest.raises(TraceError, match="without a zone"):
        live([b"ts,k\n2026-03-01T09:00:00,a\n"], csv, schema=schema)


def test_a_cell_that_would_be_another_number_is_refused(tmp_path) -> None:
    csv = CsvFormat(delimiter=";", decimal=",")
    data = b"ts;k;x\n1;a;1.5\n2;b;2\n"
    assert traced(tmp_path / "a.csv", data, csv) == ([B], 1)
    trace = open_trace(tmp_path / "a.csv", SCHEMA, csv=csv)
    list(trace)
    assert trace.refused == {"x: cannot read \"1.5 (decimal=',')\" as double": 1}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"delimiter": ";;"}, "delimiter must be one ASCII character"),
        ({"delimiter": '"'}, "neither quote nor comment"),
        ({"decimal": ";"}, "decimal must be"),
        ({"thousands": ".", "decimal": "."}, "another sign than decimal"),
        ({"encoding": "klingon"}, "encoding must be a codec"),
        ({"dates": "%d.%m.%y"}, "years of four digits"),
        ({"dates": "%H:%M"}, "with day, month and year"),
        ({"zone": "Mars"}, "a time zone"),
        ({"names": ("a",)}, "header=False"),
    ],
)
def test_a_format_that_cannot_be_is_refused(options, match) -> None:
    with pytest.raises(UsageError, match=match):
        CsvFormat(**options)


def test_the_command_line_has_the_same_options() -> None:
    text = "delimiter=tab,decimal=,,thousands=.,dates=%d.%m.%Y|%Y%m%d,nulls=-|n/a,header=no,names=a|b"
    assert CsvFormat.of(text) == CsvFormat(
        delimiter="\t", decimal=",", thousands=".", dates=("%d.%m.%Y", "%Y%m%d"), nulls=("-", "n/a"),
        header=False, names=("a", "b"),
    )  # fmt: skip
    with pytest.raises(UsageError, match="NAME one of delimiter, quote"):
        CsvFormat.of("delimeter=;")


GUESSES = {
    ("7", "8"): "int64", ("007", "7", "07"): "string", ("007",): "string", ("+7", "7"): "string",
    ("0", "-0"): "string", ("0x1F", "31"): "string", ("1e5", "100000"): "string", ("1.0", "1"): "string",
    ("1.5", "2.25"): "double", ("1.50", "1.5"): "string", (" 7", "7"): "string", ("7", "NA"): "int64",
    ("1e999", "2"): "string", ("true", "false"): "bool", ("true", "True", "false"): "string",
    ("2026-03-01", "2026-03-01T00:00:00"): "timestamp[us]", ("2026-01-01T10:00:00",): "timestamp[us]",
    ("2026-01-01T10:00:00+01:00", "2026-01-01T10:00:00Z"): "timestamp[us, tz=UTC]",
    ("2026-01-01T10:00:00+01:00", "2026-01-01T10:00:00"): "string",
    ("18446744073709551616", "18446744073709551617"): "string", ("18446744073709551615",): "uint64",
}  # fmt: skip


@pytest.mark.parametrize("cells", GUESSES)
def test_a_guess_makes_no_two_texts_one_value(tmp_path, cells) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,k\n" + "".join(f"1,{cell}\n" for cell in cells))
    trace = open_trace(path, time="ts", unit="s")
    assert str(trace.schema.type_of("k")) == GUESSES[cells]
    assert sum(map(len, trace.pages())) == len(cells)


def test_a_column_that_is_text_because_of_few_cells_is_named(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,bytes\n" + "".join(f"{i},{i if i != 1500 else 'n/a'}\n" for i in range(1, 3000)))
    trace = open_trace(path, time="ts", unit="s")
    assert trace.notes == [
        "bytes: text, since row 1,500 is 'n/a'; types={\"bytes\": int64} refuses that row (--type bytes=int64)"
    ]
    asked = open_trace(path, time="ts", unit="s", types={"bytes": pa.int64()})
    assert sum(map(len, asked.pages())) == 2998
    assert asked.refused == {"bytes: cannot read 'n/a' as int64": 1}
    assert asked.notes == []
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"ts": 1, "k": 5}\n{"ts": 2, "k": 6}\n{"ts": 3, "k": "7"}\n')
    assert "k: text, since row 3 is '7'" in open_trace(lines, time="ts", unit="s").notes[0]


def test_a_number_behind_the_guess_that_may_be_a_key_is_refused(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,k\n" + "1,7\n" * 400_000 + "1,007\n1,-5\n1,0\n")
    trace = open_trace(path, time="ts", unit="s")
    assert sum(map(len, trace.pages())) == 400_002
    assert list(trace.refused.values()) == [1]


def test_what_is_sniffed_is_told(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts;x\n31.12.2026 23:59:59;1,5\n1.1.2027 00:00:00;22,75\n")
    trace = open_trace(path, time="ts")
    [page] = trace.pages()
    assert page.to_pylist()[0] == {"ts": dt.datetime(2026, 12, 31, 23, 59, 59), "x": 1.5}
    [note] = trace.notes
    assert note.startswith('csv: delimiter ";", decimal ",", dates ["%d.%m.%Y %H:%M:%S"] (sniffed')


DATES: dict[str, tuple[list[str], dt.datetime | str]] = {
    "%Y/%m/%d": (["2026/01/02", "2026/1/3"], dt.datetime(2026, 1, 2)),
    "%Y/%m/%d %H:%M": (["2026/01/02 13:05"], dt.datetime(2026, 1, 2, 13, 5)),
    "%b %d %Y": (["Jan 2 2026", "Feb 3 2026"], dt.datetime(2026, 1, 2)),
    "%b %d, %Y": (['"Jan 2, 2026"', '"Feb 13, 2026"'], dt.datetime(2026, 1, 2)),
    "%d %b %Y %H:%M:%S": (["2 Jan 2026 13:05:01"], dt.datetime(2026, 1, 2, 13, 5, 1)),
    "%d-%b-%Y": (["02-JAN-2026"], dt.datetime(2026, 1, 2)),
    "%m/%d/%Y %I:%M %p": (["01/02/2026 1:05 PM", "01/13/2026 12:05 am"], dt.datetime(2026, 1, 2, 13, 5)),
    "%d-%m-%Y %H:%M:%S.%f": (
        ["02-01-2026 13:05:00.25", "13-01-2026 13:05:00.5"],
        dt.datetime(2026, 1, 2, 13, 5, 0, 250_000),
    ),
    "two days": (["01/02/2026", "03/04/2026"], "01/02/2026"),
    "two days, dashes": (["01-02-2026", "03-04-2026"], "01-02-2026"),
    "versions": (["2026.1.2", "2026.3.4"], "2026.1.2"),
    "no months": (["abc 1 2026", "xyz 2 2026"], "abc 1 2026"),
    "addresses": (["10.0.0.1", "10.0.0.2"], "10.0.0.1"),
    "mixed": (["2026/01/02", "2 Jan 2026", "x"], "2026/01/02"),
}


@pytest.mark.parametrize("form", DATES)
def test_dates_are_sniffed_where_they_have_one_meaning(tmp_path, form) -> None:
    texts, first = DATES[form]
    path = tmp_path / "a.csv"
    path.write_text("n,day\n" + "".join(f"{n},{text}\n" for n, text in enumerate(texts)))
    [page] = open_trace(path, time="n", unit="s").pages()
    assert page.to_pylist()[0]["day"] == first
    if isinstance(first, dt.datetime):
        assert sum(map(len, open_trace(path, time="day").pages())) == len(texts)
        return
    with pytest.raises(TraceError, match="column 'day' is text, and no event time"):
        open_trace(path, time="day")


def test_the_value_that_is_no_time_is_named(tmp_path) -> None:
    path = tmp_path / "a.csv"
    for texts, odd in (
        (["2010/01/01", "2010/13/45", "2010/02/30", "2010/14/28"], "'2010/13/45': write 2024-"),
        (["2026-01-01", "x", "y"], "'x': write 2024-"),
        (["03/04/2026", "04/04/2026"], "'03/04/2026'; CsvFormat(dates=\"%d/%m/%Y\") reads it"),
    ):
        path.write_text("day\n" + "".join(f"{text}\n" for text in texts))
        with pytest.raises(TraceError) as caught:
            open_trace(path, time="day")
        assert odd in str(caught.value)


SIGNS = {
    "ts;x\n1;1.234,50\n2;7,25\n3;1.000\n4;12\n": [1234.5, 7.25, 1000.0, 12.0],
    'ts,x\n1,"1,234.50"\n2,7.25\n3,"1,000"\n': [1234.5, 7.25, 1000.0],
    "ts|x\n1|-1,234,567.8\n2|9\n": [-1234567.8, 9.0],
    "ts;x;y\n1;1.234,50;48.137\n2;7,25;11.576\n": ["1.234,50", "7,25"],  # y would be 48137
    "ts;x\n1;1.234\n2;2.500\n": [1.234, 2.5],
    "ts;x;y\n1;1.234,50;10.0.0.1\n2;7,25;10.0.0.2\n": [1234.5, 7.25],
}


@pytest.mark.parametrize("text", SIGNS)
def test_signs_of_numbers_are_sniffed_where_they_have_one_meaning(tmp_path, text) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    trace = open_trace(path, time="ts", unit="s")
    assert [row["x"] for page in trace.pages() for row in page.to_pylist()] == SIGNS[text]


def test_a_point_between_thousands_leaves_the_comma_for_decimals() -> None:
    assert CsvFormat(thousands=".") == CsvFormat(thousands=".", decimal=",")


@pytest.mark.parametrize("data", [b"", b"\n\n", b'"ts\n', b"\xef\xbb\xbf"])
def test_a_file_without_a_header_is_an_error_of_one_line(tmp_path, data) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(TraceError, match=r"a.csv: .*begins with a line of column names"):
        open_trace(tmp_path / "a.csv", SCHEMA)


def test_a_header_alone_has_no_rows(tmp_path) -> None:
    assert traced(tmp_path / "a.csv", b"ts,k,x") == ([], 0)


@pytest.mark.slow
def test_a_row_beyond_the_limit_is_refused_alone(tmp_path) -> None:
    long = b"9," + b"z" * (1 << 22) + b",1\n"
    for data in (b"1,a,1\n" + long + b"2,b,2\n", long + b"1,a,1\n2,b,2\n"):
        assert traced(tmp_path / "a.csv", HEAD + data) == ([A, B], 1)
    assert traced(tmp_path / "a.csv", HEAD + b'1,a,1\n9,"' + b"z\n" * (1 << 21) + b"2,b,2\n")[0] == [A, B]


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_text_of_more_bytes_a_character_is_read_whole_or_refused_in_one_line(
    tmp_path: Any, encoding: str, marked: bool
) -> None:
    schema = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")
    mark = "\ufeff" * marked
    csv, lines = tmp_path / "a.csv", tmp_path / "a.jsonl"
    csv.write_bytes(f"{mark}ts,host\n1,é\n2,b\n".encode(encoding))
    lines.write_bytes((mark + '{"ts": 1, "host": "é"}\n{"ts": 2, "host": "b"}\n').encode(encoding))
    assert [row["host"] for page in open_trace(csv, schema).pages() for row in page.to_pylist()] == ["é", "b"]
    name = encoding[:6].upper()
    reason = f"must be UTF-8; got {name}, by its first bytes: convert it \\(iconv -f {name} -t UTF-8\\)"
    graph = Graph("g")
    graph.sink("out", graph.source("in", schema))
    with pytest.raises(TraceError, match=f"a.jsonl: {reason}"):
        open_trace(lines, schema)
    for path in (csv, lines):
        tail = FileTail(path, path.suffix[1:], follow=False)
        with pytest.raises(TraceError, match=f"{path.name}: {reason}"):
            run_async(serve(graph, {"in": tail}, {"out": Gathered()}))
