"""Turns: every contender from file to file, one after the other, round after round; answers are compared first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.field import ROOT
from benchmarks.files.answer import GRAPHS
from benchmarks.files.questions import QUESTIONS
from oop_engine.traces.table_writing import write_table

__all__ = ["FORMATS", "Measured", "Workload", "measure"]

FORMATS = ("parquet", "csv", "jsonl", "arrow")


@dataclass(frozen=True)
class Workload:
    """A question over files of a format."""

    format: str
    question: str
    rows: int

    @property
    def name(self) -> str:
        """Return the name by which it is asked for."""
        return f"{self.format}-{self.question}"


@dataclass
class Measured:
    """What a contender took, an entry a round: of the whole process, and (``warm``) of its second turn in one."""

    workload: str
    rows: int
    contender: str
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    warm_wall_s: list[float] = field(default_factory=list)
    warm_cpu_s: list[float] = field(default_factory=list)
    peak_rss_mb: float = 0.0
    correct: bool = False

    def told(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


def measure(
    workload: Workload, contenders: Sequence[str], rounds: int, *, warm: bool = True
) -> list[Measured]:
    """Make the files, compare one answer of each contender, then time them by turns."""
    found = [Measured(workload.name, workload.rows, contender) for contender in contenders]
    with tempfile.TemporaryDirectory(prefix="oop-files-") as folder:
        tables = QUESTIONS[workload.question].data(workload.rows)
        paths = {name: f"{folder}/{name}.{workload.format}" for name in tables}
        for name, table in tables.items():
            write_table(paths[name], table)
        right = QUESTIONS[workload.question].right(tables)
        out = f"{folder}/results.parquet"
        for each in found:
            _whole(each.contender, workload.question, out, paths)
            each.correct = same_rows(pq.read_table(_answer(out, each.contender)), right)
        for _ in range(rounds):
            for each in found:
                _take_turn(each, workload.question, out, paths, warm=warm and each.contender != "serve")
    return found


def _answer(out: str, contender: str) -> str:
    """Return where the results of a contender are: those of a service are a folder with a file a checkpoint."""
    return f"{out}-served" if contender == "serve" else out


def _take_turn(each: Measured, question: str, out: str, paths: dict[str, str], *, warm: bool) -> None:
    wall, cpu, peak = _whole(each.contender, question, out, paths)
    each.wall_s.append(wall)
    each.cpu_s.append(cpu)
    each.peak_rss_mb = max(each.peak_rss_mb, peak)
    if warm:
        said = _run(_answering(each.contender, question, out, 2, paths))[0]
        took = json.loads(said.splitlines()[-1])
        each.warm_wall_s.append(took["wall_s"])
        each.warm_cpu_s.append(took["cpu_s"])


def _whole(contender: str, question: str, out: str, paths: dict[str, str]) -> tuple[float, float, float]:
    """Run a whole program; return its wall and CPU seconds and its peak of memory in MiB."""
    command = _answering(contender, question, out, 1, paths)
    if contender == "engine":
        sources = [f"{name}={path}" for name, path in paths.items()]
        command = [
            sys.executable,
            "-m",
            "oop_engine.cli",
            "run",
            f"{GRAPHS}:{question}",
            *sources,
            "--out",
            out,
        ]
    if contender == "serve":
        command = _service(question, out, paths)
    return _run(command)[1:]


def _service(question: str, out: str, paths: dict[str, str]) -> list[str]:
    """Return the command of a service over files to their ends, with checkpoints, from nothing."""
    for folder in (served := _answer(out, "serve"), state := f"{out}-state"):
        shutil.rmtree(folder, ignore_errors=True)
    kind = "tail" if next(iter(paths.values())).endswith(("jsonl", "csv")) else "folder"
    sources = [f"--source={name}={kind}:{_whole_of(kind, path)}?follow=no" for name, path in paths.items()]
    command = [sys.executable, "-m", "oop_engine.cli", "run", f"{GRAPHS}:{question}", *sources, "--drain"]
    return [*command, f"--sink=results=parquet:{served}", f"--checkpoint={state}"]


def _whole_of(kind: str, path: str) -> str:
    """Return a file that is followed, or the folder in which it is alone."""
    if kind == "tail":
        return path
    folder = Path(f"{path}-alone")
    folder.mkdir(exist_ok=True)
    if not (link := folder / Path(path).name).exists():
        os.link(path, link)
    return str(folder)


def _answering(contender: str, question: str, out: str, turns: int, paths: dict[str, str]) -> list[str]:
    sources = [f"{name}={path}" for name, path in paths.items()]
    return [sys.executable, "-m", "benchmarks.files.answer", contender, question, out, str(turns), *sources]


def _run(command: list[str]) -> tuple[str, float, float, float]:
    """Run a command to its end; return what it printed, wall and CPU seconds, and its peak of memory in MiB."""
    launched = [sys.executable, "-S", "-E", str(Path(__file__).with_name("launched.py")), *command]
    # As a user has it: modules that were compiled once are not compiled again with each start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(
        Path(tempfile.gettempdir()) / f"oop-files-bytecode-{os.getuid()}"
    )
    ended = subprocess.run(launched, capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
    complaints, _, told = ended.stderr.rstrip().rpartition("\n")
    wall, cpu, peak, code = json.loads(told)
    if code:
        msg = f"{' '.join(command)}: ended with {code}: {complaints[-2000:]}"
        raise RuntimeError(msg)
    return ended.stdout, wall, cpu, peak


def same_rows(found: pa.Table, right: pa.Table) -> bool:
    """Tell whether ``found`` has the rows of ``right``, and no other, in any order; it may have more columns."""
    if not set(right.column_names) <= set(found.column_names):
        return False
    order = [(name, "ascending") for name in right.column_names]
    wanted = right.cast(_plain(right)).sort_by(order)
    mine = found.select(right.column_names)
    return bool(mine.cast(_plain(mine)).sort_by(order).equals(wanted))


def _plain(table: pa.Table) -> pa.Schema:
    """Return the columns as texts or integers of 64 bits: a contender may have narrower ones, or views."""
    return pa.schema(
        [
            (
                f.name,
                pa.int64() if pa.types.is_integer(f.type) or pa.types.is_decimal(f.type) else pa.string(),
            )
            for f in table.schema
        ]
    )
