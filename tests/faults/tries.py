"""Tries: scenarios and tests in processes of their own, with a fault; what they said is stored in a file.

A line of the file is a try: the digest of the sources, the fault, the scenario or test, the turn, the answer.  Lines
of other sources are passed over, so a run that was interrupted goes on, and one behind a change begins anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from tests.faults.planting import ROOT
from tests.faults.verdicts import Verdicts

__all__ = ["Tries"]

SECONDS = 300  # for a scenario or a test
FAILED = 1  # pytest: tests were run, and some failed
SOURCES = ("oop_engine", "tests")


class Tries:
    """``kept``: the file of answers.  Each new try is a line on the terminal."""

    def __init__(self, kept: Path) -> None:
        self._kept, self._lock, self._sources = kept, Lock(), _digest()
        kept.parent.mkdir(exist_ok=True)
        lines = kept.read_text().splitlines() if kept.exists() else []
        read = [json.loads(line) for line in lines if line.endswith("}")]
        self._answers = {_name(*one["try"]): one["answer"] for one in read if one["sources"] == self._sources}
        if self._answers:
            print(f"{len(self._answers)} tries of these sources are in {kept}: going on", flush=True)

    def scenarios(self, fault: str, scenarios: Sequence[str], turn: int = 0) -> dict[str, Verdicts]:
        """Return the verdicts of scenarios with a fault; "": without one.  ``turn``: for the same again."""
        left = [name for name in scenarios if _name(fault, name, turn) not in self._answers]
        began = time.monotonic()
        for found in _verdicts(fault, left):
            fails = sum(verdict == "fails" for verdict in found.claims.values())
            said = found.error or f"{fails} of {len(found.claims)} claims fail"
            self._add((fault, found.scenario, turn), found, said, began)
            began = time.monotonic()
        return {name: Verdicts(*self._answers[_name(fault, name, turn)]) for name in scenarios}

    def test(self, fault: str, test: str) -> bool:
        """Tell whether a test fails with a fault."""
        if _name(fault, test, 0) not in self._answers:
            began = time.monotonic()
            fails = _fails(fault, test)
            self._add((fault, test, 0), fails, "fails" if fails else "passes", began)
        return bool(self._answers[_name(fault, test, 0)])

    def _add(self, tried: tuple[str, str, int], answer: Any, said: str, began: float) -> None:
        line = json.dumps({"sources": self._sources, "try": tried, "answer": answer})
        with self._lock:
            self._answers[_name(*tried)] = answer
            with self._kept.open("a") as file:
                file.write(f"\n{line}")  # behind a line that was cut, too
            print(
                f"{time.monotonic() - began:5.1f} s  {tried[0] or 'no fault'} | {tried[1]}: {said}",
                flush=True,
            )


def _name(fault: str, tried: str, turn: int) -> str:
    return f"{fault}|{tried}|{turn}"


def _digest() -> str:
    files = sorted(
        path for source in SOURCES for path in (ROOT / source).rglob("*") if path.suffix in (".py", ".toml")
    )
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}


def _verdicts(fault: str, scenarios: Sequence[str]) -> Iterator[Verdicts]:
    """Yield verdicts as they come; behind a process that stops, or takes too long, another one takes the rest."""
    left = list(scenarios)
    while left:
        last = ""
        command = [sys.executable, "-m", "tests.faults.verdicts", fault, *left]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_environment()
        ) as child:
            assert child.stdout is not None
            timer = _watch(child)
            for line in child.stdout:
                if not line.startswith("["):
                    last = line.strip() or last
                    continue
                timer.cancel()
                yield (found := Verdicts(*json.loads(line)))
                left.remove(found.scenario)
                timer = _watch(child)
            timer.cancel()
        if left:
            stopped = (
                f"longer than {SECONDS} s"
                if child.returncode < 0
                else last or f"exit code {child.returncode}"
            )
            yield Verdicts(left.pop(0), {}, [], stopped)


def _watch(child: subprocess.Popen[str]) -> Timer:
    timer = Timer(SECONDS, child.kill)
    timer.start()
    return timer


def _fails(fault: str, test: str) -> bool:
    command = [sys.executable, "-m", "tests.faults.with_fault", fault, test]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, timeout=SECONDS, check=False, env=_environment()
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode == FAILED
