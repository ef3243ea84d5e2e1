"""Files that mean harm, or met it: read as they are, in quarantine with a reason, or refused in one line."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine.core.errors import EngineError, TraceError
from oop_engine.pipeline.declaration import load_declaration
from oop_engine.pipeline.job import Wanted, run_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVENTS = """
format = "{format}"
[columns]
ts = "int64"
link = "string"
[stream]
time = "ts"
unit = "ms"
source = "link"
"""
NAMES = """a[1] b* c? d{1,2} e\\f _g h:i j%20k .l m^$ "n" 'o' ü"""


def pipeline(
    spark: SparkSession, folder: Path, format: str, *inputs: Path, out: str = "out", until: str = "parse"
) -> dict[str, Any]:
    path = folder / "events.toml"
    path.write_text(EVENTS.format(format=format))
    return run_pipeline(Wanted(load_declaration(path), inputs, folder / out, until=until), spark=spark)


def quarantine(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / "out" / "quarantine").to_pylist()
    return found


@pytest.mark.slow
def test_files_are_those_that_were_given(spark: SparkSession, tmp_path: Path) -> None:
    names = [*(f"{name}.csv" for name in NAMES.split()), "p q.csv", "r\ns.csv"]
    for number, name in enumerate(names):
        (tmp_path / name).write_text("ts,link\n" + "".join(f"{number},{chr(97 + number)}\n" * (number + 1)))
    for decoy in ("a1.csv", "bb.csv", "cc.csv", "d1.csv", "d2.csv", "ef.csv", "e/f.csv", "j k.csv"):
        (tmp_path / decoy).parent.mkdir(exist_ok=True)
        (tmp_path / decoy).write_text("ts,link\n99,z\n")
    given = [tmp_path / name for name in names]
    told = pipeline(spark, tmp_path, "csv", *given, out="o[1]{x}*?\\", until="profile")
    assert [file["rows"] for file in told["in"]["files"]] == [*range(1, len(names) + 1)]
    firsts = {name: (p["first"], p["last"], p["tuples"]) for name, p in told["profile"].items()}
    assert firsts == {chr(97 + n): (n, n, n + 1) for n in range(len(names))}
    assert not (tmp_path / "o[1]{x}*?\\" / "inputs").exists()


TRAILING = [
    '{"ts": 1, "link": "a"} garbage',
    '{"ts": 2, "link": "a"},',
    '{"ts": 3, "link": "a"}{"ts": 4, "link": "b"}',
    '{"ts": 5, "link": "a"} {"x": 1}',
    '{"ts": 6, "link": "a"}]',
    '{"ts": 6, "link": "a"}]}]{"ts": 6}',
    '{"ts": 6, "link": "a"}], [{"ts": 6}',
    '{"ts": 7, "link": "a"}}}}',
    '{"ts": 7, "link": "a"}}]}{"ts": 7}',
    '[{"ts": 8, "link": "a"}]',
    '{"ts": 8, "link": "a"}, null',
    '{"ts": 8, "link": "a"} // so',
    '{"ts": 8, "link": "a"',
    "null",
    '{"ts": ' + "[" * 5000 + "]" * 5000 + ', "link": "a"}',
]
GOOD = [
    '{"ts": 9, "link": "a"}',
    ' {"ts": 9, "link": "a", "_misfit": "x", "_metadata": 1}\t',
    '{"ts": 9, "link": "a}]"}',
    '{"ts": 9, "link": "a", "more": [[{"x": 1}], {"y": []}]}',
]


@pytest.mark.slow
def test_what_follows_an_object_is_not_dropped(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "x[1].jsonl"
    path.write_text("\n".join([*TRAILING, "", " \t", *GOOD, ""]))
    told = pipeline(spark, tmp_path, "json", path)
    assert told["quarantined"] == {"is no JSON object": len(TRAILING)}
    assert told["rows"]["used"] == len(GOOD)
    assert {row["raw"] for row in quarantine(tmp_path)} == set(TRAILING)


@pytest.mark.slow
def test_names_of_columns_are_no_expressions(spark: SparkSession, tmp_path: Path) -> None:
    evil = "x` AS y, java_method('java.lang.System', 'setProperty', 'oop.evil', 'yes') AS `z"
    (tmp_path / "a.csv").write_text(f'ts,link,"{evil}",_misfit,a.b\n1,a,1,2,3\nno,a,1,2,3\n')
    told = pipeline(spark, tmp_path, "csv", tmp_path / "a.csv")
    assert (told["rows"]["used"], told["rows"]["quarantined"]) == (1, 1)
    raw = json.loads(quarantine(tmp_path)[0]["raw"])
    assert raw == {"ts": "no", "link": "a", evil: "1", "_misfit": "2", "a.b": "3"}
    assert spark._jvm.java.lang.System.getProperty("oop.evil") is None

    names = [evil, "_misfit", "_cell_0", "_metadata", "_file", "a.b", "`"]
    table = pa.table({"ts": [1, 2, None], "link": ["a"] * 3} | {name: [1, 2, 3] for name in names})
    folder = tmp_path / "parquet"
    folder.mkdir()
    pq.write_table(table, folder / "a[1].parquet")
    told = pipeline(spark, folder, "parquet", folder / "a[1].parquet")
    assert (told["rows"]["used"], told["quarantined"]) == (2, {"ts is null": 1})
    assert json.loads(quarantine(folder)[0]["raw"]) == {"ts": None, "link": "a"} | dict.fromkeys(names, 3)


@pytest.mark.slow
def test_a_source_that_no_folder_can_be_named_after(spark: SparkSession, tmp_path: Path) -> None:
    values = ["a\0b", "", "y" * 201, ":" * 67, "ü" * 101, "c/../d", "z" * 200, "?" * 66, "ü" * 100, "e\nf"]
    lines = [json.dumps({"ts": number, "link": value}) for number, value in enumerate(values)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    told = pipeline(spark, tmp_path, "json", tmp_path / "a.jsonl", until="profile")
    assert told["quarantined"] == {"link: too long for the name of a source, or no name": 5}
    assert sorted(json.loads(row["raw"])["ts"] for row in quarantine(tmp_path)) == ["0", "1", "2", "3", "4"]
    assert told["rows"]["used"] == 5
    assert set(told["profile"]) == {"c____d", "z" * 200, "_" * 66, "ü" * 100, "e_f"}


@pytest.mark.slow
def test_a_file_that_is_damaged_is_told_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(1)
    rows = [(number, dice.randbytes(8).hex()) for number in range(20_000)]
    packed = gzip.compress("".join(f'{{"ts": {ts}, "link": "{link}"}}\n' for ts, link in rows).encode())
    (tmp_path / "good.jsonl").write_text('{"ts": 1, "link": "a"}\n')
    (tmp_path / "cut[1].jsonl.gz").write_bytes(packed[: len(packed) // 2])
    given = [tmp_path / "good.jsonl", tmp_path / "cut[1].jsonl.gz"]
    with pytest.raises(TraceError) as told:
        pipeline(spark, tmp_path, "json", *given)
    assert "\n" not in str(told.value)
    for words in ("a row could not be parsed", "[FAILED_READ_FILE", str(given[1]), "EOFException"):
        assert words in str(told.value)
    assert "Py4J" not in str(told.value)

    path = tmp_path / "flipped.parquet"
    pq.write_table(pa.table({"ts": [ts for ts, _ in rows], "link": [link for _, link in rows]}), path)
    damaged = bytearray(path.read_bytes())
    damaged[5000:5200] = bytes(b ^ 0x5A for b in damaged[5000:5200])
    path.write_bytes(damaged)
    with pytest.raises(TraceError) as told:
        pipeline(spark, tmp_path, "parquet", path)
    assert f"while reading file {path}" in str(told.value)
    assert isinstance(told.value.__cause__, RuntimeError), "which has the trace of Java"
    assert "FileScanRDD" in str(told.value.__cause__)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('[columns.at]\ntype = "timestamp"\nformat = "bad{b"', "bad{b"),
        ("[computed]\nmore = \"regexp_replace(link, '(', '')\"", "'('"),
        ("[computed]\nmore = \"to_timestamp(link, 'bbb')\"", "bbb"),
        ('[computed]\nmore = "int(link)"', "CAST_INVALID_INPUT"),
        ('[computed]\nmore = "(link"', "PARSE_SYNTAX_ERROR"),
    ],
)
def test_what_spark_cannot_do_is_one_line(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], more: str, words: str
) -> None:
    (tmp_path / "a.csv").write_text("ts,link,at\n1,a,b\n")
    path = tmp_path / "events.toml"
    path.write_text(EVENTS.format(format="csv") + more)
    with pytest.raises(EngineError) as told:
        run_pipeline(
            Wanted(load_declaration(path), [tmp_path / "a.csv"], tmp_path / "out", until="parse"), spark=spark
        )
    assert words in str(told.value)
    assert "\n" not in str(told.value)
    assert "QueryContextLogger" not in capfd.readouterr().err
