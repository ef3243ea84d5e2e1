"""Declarations: what cannot be is told in one line, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine.core.errors import EngineError, TraceError, UsageError
from oop_engine.pipeline.declaration import load_declaration
from oop_engine.pipeline.inputs import find_inputs, layouts
from oop_engine.traces.csv_format import CsvFormat, high_texts

ROOT = Path(__file__).parents[3]

GOOD = """
[columns]
ts = "int64"
at = {type = "timestamp", format = "dd/MM/yyyy HH:mm", zone = "Europe/Berlin"}
link = "string"

[computed]
double = "2 * ts"

[refuse]
"is nothing" = "ts < 0"

[stream]
time = "ts"
unit = "ms"
arrival = "ts"
source = "link"
by = ["link"]
"""


def written(folder: Path, text: str, name: str = "events.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_what_is_said_is_read(tmp_path: Path) -> None:
    said = load_declaration(written(tmp_path, GOOD))
    assert said.name == "events"
    assert said.columns["at"].zone == "Europe/Berlin"
    assert (said.time, said.unit, said.arrival, said.source, said.by) == (
        "ts",
        "ms",
        "ts",
        ("link",),
        ("link",),
    )
    assert said.stream == ("ts", "at", "link", "double")
    assert said.graph_file is None


def test_csv_has_the_options_of_traces(tmp_path: Path) -> None:
    text = (
        GOOD
        + '[csv]\ndecimal = ","\nnulls = "-"\ndates = ["%d.%m.%Y"]\nzone = "Asia/Tokyo"\n'
        + '[columns.more]\ntype = "timestamp"'
    )
    said = load_declaration(written(tmp_path, text))
    assert said.csv == CsvFormat(
        delimiter=";", decimal=",", nulls=("-",), dates=("%d.%m.%Y",), zone="Asia/Tokyo", header=True
    )
    assert (said.columns["more"].zone, said.columns["at"].zone) == ("Asia/Tokyo", "Europe/Berlin")
    assert (high_texts("cp1252") or "")[:1] == "\u20ac"
    assert high_texts("utf-8") == ""


def test_a_header_is_found_as_in_traces(tmp_path: Path) -> None:
    text = GOOD + '[csv]\nquote = "|"\ndelimiter = ";"\ncomment = "#"\nencoding = "latin-1"'
    (tmp_path / "a.csv.zst").write_bytes(
        pa.compress(
            "# a comment\n\n|ts|;at;|li;n||k|;link;\xe9\n1;;;a;\n".encode("latin-1"), "zstd", asbytes=True
        )
    )
    found = layouts(load_declaration(written(tmp_path, text)), find_inputs([tmp_path], "csv"))
    assert found[0].names == ("ts", "at", "li;n|k", "link", "\xe9")
    bare = GOOD + '[csv]\nheader = false\nnames = ["link", "x", "ts", "at"]'
    assert layouts(load_declaration(written(tmp_path, bare)), found[0].files)[0].names == (
        "link",
        "x",
        "ts",
        "at",
    )


def test_a_python_file_says_the_same_and_may_hold_the_graph(tmp_path: Path) -> None:
    text = 'DECLARATION = {"columns": {"ts": "int64"}, "stream": {"time": "ts", "unit": "ms"}}'
    path = written(tmp_path, text, "events.py")
    said = load_declaration(path)
    assert said.stream == ("ts",)
    assert said.graph_file == path


@pytest.mark.parametrize("name", ["nyc_flights", "links"])
def test_those_that_come_along_are_right(name: str) -> None:
    said = load_declaration(ROOT / "oop_engine" / "scenarios" / "pipelines" / f"{name}.toml")
    assert said.graph_file is not None
    assert said.graph_file.is_file()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('ts = "int64"', "ts = ", "is no TOML"),
        ('ts = "int64"', 'ts = "int46"', "'ts': unknown type 'int46'; did you mean int64?"),
        ('ts = "int64"', "ts = 64", "'ts' must be a type or"),
        (
            'ts = "int64"',
            'ts = {type = "int64", zone = "Europe/Berlin"}',
            "only a timestamp has a format or a zone",
        ),
        ('ts = "int64"', 'ts = {type = "int64", unit = "ms"}', "column 'ts' has no 'unit'"),
        ('ts = "int64"', 'ts = "float64"', "must be an integer or a timestamp; got float64"),
        ('ts = "int64"', 'ts = "int64"\n_x = "string"', "'_x': a name begins with a letter"),
        ('ts = "int64"', 'ts = "int64"\nTS = "string"', "Spark ignores case"),
        (
            "Europe/Berlin",
            "Europe/Berlni",
            "unknown time zone 'Europe/Berlni'; did you mean Europe/Berlin?",
        ),
        ('time = "ts"', 'time = "tz"', "[stream] time: no column 'tz'; there are ts, at, link, double"),
        ('time = "ts"', "", "must name the time"),
        ('unit = "ms"', "", "needs a unit"),
        ('arrival = "ts"', 'arival = "ts"', "[stream] has no 'arival'; did you mean arrival?"),
        ('source = "link"', "source = 3", "[stream] source must be names of columns; got 3"),
        ('by = ["link"]', 'by = ["link"]\nkeep = ["ts"]', "by: 'link' must be kept"),
        ("double =", "ts =", "'ts' is a column of the files already"),
        ("[columns]", 'format = "xml"\n[columns]', "format must be one of csv, json, parquet; got 'xml'"),
        ("[columns]", 'name = "a b"\n[columns]', "name is made of letters"),
        ("[columns]", '[csv]\ndelimiter = "||"\n[columns]', "[csv] delimiter must be one ASCII character"),
        (
            "[columns]",
            '[csv]\ndelimiter = "\\\\"\n[columns]',
            "delimiter must be another character than a backslash",
        ),
        ("[columns]", '[csv]\nencoding = "utf-16"\n[columns]', "got 'utf-16': convert the files to UTF-8"),
        ("[columns]", '[csv]\nencoding = "shift_jis"\n[columns]', "of one byte a character"),
        ("[columns]", '[csv]\ndates = "%d.%m.%y"\n[columns]', "[csv] dates must have years of four digits"),
        ("[columns]", '[csv]\nheader = false\nnames = ["ts"]\n[columns]', "names must have all columns"),
        ("[columns]", "[csv]\nnulls = 3\n[columns]", "[csv] nulls must be a text or texts; got 3"),
        ("[columns]", '[csv]\nquota = "|"\n[columns]', "[csv] has no 'quota'; did you mean quote?"),
        (
            "[columns]",
            'format = "json"\n[csv]\nquote = "|"\n[columns]',
            "[csv] is for CSV files; got format 'json'",
        ),
        ("[columns]", '[csv]\nheader = "yes"\n[columns]', "header must be true or false"),
        ("[refuse]", "[reject]", "has no 'reject'"),
    ],
)
def test_what_cannot_be_is_told(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(UsageError) as told:
        load_declaration(path)
    assert words in str(told.value)
    assert str(told.value).startswith(str(path))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("events.yaml", "", "a declaration is a .toml file"),
        ("events.py", "", "must define DECLARATION"),
        ("events.py", "1 / 0", "cannot be loaded: ZeroDivisionError"),
    ],
)
def test_a_file_that_declares_nothing(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load_declaration(written(tmp_path, text, name))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        load_declaration(tmp_path / "none.toml")


def test_files_of_a_folder_are_found_by_name(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.csv.gz", ".hidden.csv", "_SUCCESS", "notes.md"):
        written(tmp_path, "ts\n1\n", name)
    assert [file.path.name for file in find_inputs([tmp_path], "csv")] == ["a.csv", "b.csv", "c.csv.gz"]
    with pytest.raises(UsageError, match="no parquet file in it"):
        find_inputs([tmp_path], "parquet")
    with pytest.raises(UsageError, match="is given twice"):
        find_inputs([tmp_path, tmp_path / "a.csv"], "csv")
    with pytest.raises(UsageError, match="no such file or folder"):
        find_inputs([tmp_path / "none"], "csv")


def test_files_with_the_same_columns_are_together(tmp_path: Path) -> None:
    said = load_declaration(written(tmp_path, GOOD))
    for name, header in (("a", "ts,at,link"), ("b", "link,extra,ts,at"), ("c", "ts,at,link")):
        written(tmp_path, f"{header}\n", f"{name}.csv")
    found = layouts(said, find_inputs([tmp_path], "csv"))
    assert [layout.names for layout in found] == [("ts", "at", "link"), ("link", "extra", "ts", "at")]
    assert [[file.number for file in layout.files] for layout in found] == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ts,link\n", "no column 'at'; there are ts, link"),
        ("", "its first line must be names"),
        ("ts,at,link,TS\n", "its first line must be names of columns, each another"),
    ],
)
def test_a_header_that_does_not_fit(tmp_path: Path, text: str, words: str) -> None:
    said = load_declaration(written(tmp_path, GOOD))
    path = written(tmp_path, text, "a.csv")
    with pytest.raises(TraceError) as told:
        layouts(said, find_inputs([path], "csv"))
    assert words in str(told.value)


def test_a_type_of_parquet_that_does_not_fit(tmp_path: Path) -> None:
    said = load_declaration(written(tmp_path, 'format = "parquet"\n' + GOOD))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"ts": [True], "at": ["01/02/2020 10:00"], "link": ["a"]}), path)
    with pytest.raises(EngineError, match="'ts' must be int64; got bool: declare it as that"):
        layouts(said, find_inputs([path], "parquet"))
    path.write_bytes(b"nothing")
    with pytest.raises(TraceError, match="cannot be read"):
        layouts(said, find_inputs([path], "parquet"))
