"""Parts of packages that are installed beside this one are known by their names, in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import MOST_S

PARTS = """
from oop_engine import LiveSource, LiveSink
from oop_engine.connectors.by_name import register_source, register_sink

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
