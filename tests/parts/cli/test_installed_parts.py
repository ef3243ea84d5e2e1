"""Parts of packages that are installed beside this one are known by their names, in any process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from oop_engine import UsageError, scan, sql
from oop_engine.extend import register_windows
from oop_engine.operators import Tumbling
from tests.children import MOST_S

PARTS = """
from oop_engine.extend import LiveSink, LiveSource
from oop_engine.extend import register_sink, register_source

class Numbers(LiveSource):
    async def read(self, position):
        yield {"ts": 1}, 1

@register_source("numbers")
def numbers(address, options, schema):
    return Numbers()

@register_sink("nowhere")
def nowhere(address, options):
    return LiveSink()
"""


def installed(folder: Path, parts: str) -> Path:
    (folder / "my_parts.py").write_text(parts)
    about = folder / "my_parts-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[oop_engine]\nparts = my_parts\n")
    return folder


def beside(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=MOST_S)


def test_a_source_and_a_sink_of_another_package_are_known(tmp_path: Path) -> None:
    code = """
import sys, pyarrow as pa
from oop_engine import Schema
from oop_engine.connectors.by_name import SINKS, sink_of, source_of
assert "my_parts" not in sys.modules
print(type(source_of("numbers:x", Schema({"ts": pa.int64()}, "ts", "s"))).__name__, "nowhere" in SINKS, *SINKS)
"""
    done = beside(installed(tmp_path, PARTS), code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Numbers True")
    assert "nowhere" in done.stdout.split()[2:]


@pytest.mark.slow
def test_windows_and_aggregates_of_another_package_are_known_to_sql_and_listed(tmp_path: Path) -> None:
    code = """
import json, sys
import pyarrow as pa
from oop_engine import scan, sql
table = pa.table({"ts": pa.array([1, 5, 12, 30], pa.int64()), "n": [1, 2, 3, 4]})
text = "SELECT window_end, most(n) AS n FROM TENS(log, ts, 2) GROUP BY ALL"
print(sql(text, log=scan(table).event_time('ts', unit='s')).run().table.to_pylist())
"""
    parts = """
from oop_engine.extend import register_aggregate, register_windows
from oop_engine.operators import Max, Tumbling
register_windows("tens")(lambda many=1: Tumbling(10 * many))
register_aggregate("most")(Max)
"""
    folder = installed(tmp_path, parts)
    done = beside(folder, code)
    assert done.stdout.strip() == "[{'window_end': 20, 'n': 3}, {'window_end': 40, 'n': 4}]", done.stderr
    listed = json.loads(
        beside(
            folder,
            "import sys; sys.argv[1:] = ['sources', '--json']; from oop_engine.cli import main; main()",
        ).stdout
    )
    assert listed["windows of SQL"]["TENS"] == "my_parts"
    assert listed["sources"]["tail"].startswith("oop_engine.")
    assert {"jsonl", "avro", "protobuf", "debezium-avro"} <= set(listed["formats of messages"])


def test_a_window_of_sql_that_is_called_wrongly_is_an_error_with_its_place() -> None:
    register_windows("PAIRS")(lambda size, of: Tumbling(size * of))
    table = scan(pa.table({"ts": pa.array([1], pa.int64())})).event_time("ts", unit="s")
    with pytest.raises(UsageError, match=r"(?s)PAIRS: .*missing 1 required positional argument.*\^"):
        sql("SELECT count(*) FROM PAIRS(log, ts, 2) GROUP BY ALL", log=table)


def test_a_package_that_fails_is_named_each_time_and_hides_no_known_name(tmp_path: Path) -> None:
    code = """
from oop_engine import UsageError
from oop_engine.connectors.by_name import SINKS
SINKS["print"]
for _ in range(2):
    try:
        SINKS["nowhere"]
    except UsageError as error:
        print(error)
"""
    done = beside(installed(tmp_path, "1 / 0"), code)
    why = "ZeroDivisionError: division by zero"
    words = f"my-parts: its entry point parts = my_parts fails: {why}: mend or uninstall it"
    assert done.stdout.splitlines() == [words, words], done.stderr


@pytest.mark.parametrize("wrong", ["1 / 0", "import no_such_module"])
def test_a_package_that_fails_is_named(tmp_path: Path, wrong: str) -> None:
    code = "from oop_engine.connectors.by_name import SINKS; 'x' in SINKS"
    done = beside(installed(tmp_path, wrong), code)
    assert done.returncode == 1
    assert "UsageError: my-parts: its entry point parts = my_parts fails" in done.stderr


WRONG_MAKERS = """
from oop_engine.extend import LiveSink, LiveSource
from oop_engine.extend import register_sink, register_source

@register_source("nothing")
def nothing(address, options, schema):
    pass

@register_source("few")
def few(address):
    return LiveSource()

@register_sink("class")
def a_class(address, options):
    return LiveSink

@register_sink("broken")
def broken(address, options):
    raise KeyError("host")
"""


def test_a_maker_that_fails_or_makes_another_thing_is_named(tmp_path: Path) -> None:
    code = """
import pyarrow as pa
from oop_engine import Schema, UsageError
from oop_engine.connectors.by_name import sink_of, source_of
schema = Schema({"ts": pa.int64()}, "ts", "s")
sources, sinks = ("nothing:x", "few:x"), ("class:x", "broken:x")
for make, given in [*((source_of, (each, schema)) for each in sources), *((sink_of, (each,)) for each in sinks)]:
    try:
        make(*given)
    except UsageError as error:
        print(error)
"""
    done = beside(installed(tmp_path, WRONG_MAKERS), code)
    assert done.stdout.splitlines() == [
        "source 'nothing:x': the kind 'nothing' of my_parts must return a LiveSource; got None (NoneType)",
        "source 'few:x': the kind 'few' of my_parts failed: TypeError: few() takes 1 positional argument but 3 were "
        "given",
        "sink 'class:x': the kind 'class' of my_parts must return a LiveSink; got "
        "<class 'oop_engine.connectors.sink.LiveSink'> (type)",
        "sink 'broken:x': the kind 'broken' of my_parts failed: KeyError: 'host'",
    ], done.stderr
