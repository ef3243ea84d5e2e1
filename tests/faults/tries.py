"""Tries of scenarios and tests, with a fault or without one; what they said is stored in a file.

A line of the file is a try: the digest of all that it rests on, the fault, the scenario or test, the turn, the answer.
Lines of other digests are passed over, so a run that was interrupted goes on, and one behind a change tries again what
the change can touch.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Timer
from typing import IO, Any

from tests.faults.planting import FAULTS, ROOT
from tests.faults.verdicts import Verdicts

__all__ = ["Tries"]

SECONDS = 900  # for a scenario or a test: twenty times what it needs where nothing else runs
FAILED = 1  # pytest: tests were run, and some failed
ENGINE = ("core", "operators", "lab", "runners", "scenarios", "spark", "system", "traces")
"""Folders of the engine that scenarios run."""


class Tries:
    """``kept``: the file of answers.  Each new try is a line on the terminal."""

    def __init__(self, kept: Path) -> None:
        self._kept, self._child = kept, _Child()
        kept.parent.mkdir(exist_ok=True)
        lines = kept.read_text().splitlines() if kept.exists() else []
        read = [json.loads(line) for line in lines if line.endswith("}")]
        same = [one for one in read if one.get("of") == _digest(*one["try"][:2])]
        self._answers = {_name(*one["try"]): one["answer"] for one in same}
        self._seconds = {one["try"][1]: one["seconds"] for one in same}
        if self._answers:
            print(f"{len(self._answers)} tries of these sources are in {kept}: going on", flush=True)

    def __enter__(self) -> Tries:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.end()

    def scenarios(self, fault: str, scenarios: Sequence[str], turn: int = 0) -> dict[str, Verdicts]:
        """Return the verdicts of scenarios with a fault; "": without one.  ``turn``: for the same again."""
        left = [name for name in scenarios if _name(fault, name, turn) not in self._answers]
        began = time.monotonic()
        for found in (self._child.verdicts(fault, name) for name in left):
            fails = sum(verdict == "fails" for verdict in found.claims.values())
            said = found.error or f"{fails} of {len(found.claims)} claims fail"
            self._add((fault, found.scenario, turn), found, said, began)
            began = time.monotonic()
        return {name: Verdicts(*self._answers[_name(fault, name, turn)]) for name in scenarios}

    def cost(self, name: str) -> float:
        """Return seconds that a scenario or a test took when it was tried last; not tried: a few."""
        return self._seconds.get(name, 5.0)

    def test(self, fault: str, test: str) -> bool:
        """Tell whether a test fails with a fault."""
        if _name(fault, test, 0) not in self._answers:
            began = time.monotonic()
            fails = self._child.ask(fault, test)[1] == FAILED
            self._add((fault, test, 0), fails, "fails" if fails else "passes", began)
        return bool(self._answers[_name(fault, test, 0)])

    def _add(self, tried: tuple[str, str, int], answer: Any, said: str, began: float) -> None:
        took = self._seconds[tried[1]] = time.monotonic() - began
        line = json.dumps({"of": _digest(*tried[:2]), "try": tried, "answer": answer, "seconds": took})
        self._answers[_name(*tried)] = answer
        with self._kept.open("a") as file:
            file.write(f"\n{line}")  # behind a line that was cut, too
        print(f"{took:5.1f} s  {tried[0] or 'no fault'} | {tried[1]}: {said}", flush=True)


def _name(fault: str, tried: str, turn: int) -> str:
    return f"{fault}|{tried}|{turn}"


@cache
def _digest(fault: str, tried: str) -> str:
    """Return a digest of all that a try rests on: the engine, the fault, sizes or the test."""
    texts = [repr(FAULTS[fault].edits) if fault in FAULTS else fault, _engine()]
    tests = (
        [ROOT / tried.partition("::")[0]]
        if "::" in tried
        else [ROOT / "tests" / "parts" / "scenarios" / "small.py"]
    )
    texts += [path.read_text() for path in tests]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


@cache
def _engine() -> str:
    paths = sorted(path for folder in ENGINE for path in (ROOT / "oop_engine" / folder).rglob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


class _Child:
    """The process that forks for each try; one that stops, or takes too long, gives way to another."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def verdicts(self, fault: str, scenario: str) -> Verdicts:
        """Return the verdicts of a scenario; why there are none is its error."""
        lines, code = self.ask(fault, scenario)
        for line in lines:
            if line.startswith("["):
                return Verdicts(*json.loads(line))
        stopped = f"longer than {SECONDS} s" if code == -signal.SIGKILL else f"exit code {code}"
        last = [line for line in lines if line]
        return Verdicts(scenario, {}, [], last[-1] if last and code != -signal.SIGKILL else stopped)

    def ask(self, fault: str, name: str) -> tuple[list[str], int]:
        """Return the lines that a try has printed, and its exit code."""
        self._process = process = self._process or self._started()
        _pipe(process.stdin).write(json.dumps([fault, name]) + "\n")
        _pipe(process.stdin).flush()
        lines = list[str]()
        timer = Timer(SECONDS, self._kill)
        timer.start()
        try:
            for line in _pipe(process.stdout):
                if line.startswith("done "):
                    return lines, int(line.split()[1])
                lines.append(line.strip())
        finally:
            timer.cancel()
        self._process = None
        return lines, process.wait()

    def end(self) -> None:
        """Let the process end."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _started(self) -> subprocess.Popen[str]:
        pipe, child = subprocess.PIPE, [sys.executable, "-m", "tests.faults.warm"]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.Popen(
            child, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=environment,
            start_new_session=True,
        )  # fmt: skip


def _pipe(of: IO[str] | None) -> IO[str]:
    assert of is not None
    return of
