"""A process that has all loaded, and forks for each try: ``python -m tests.faults.warm``.

Reads a line of JSON for each try: ``[fault, name]``, of a scenario or a test; without a fault it tries the scenario
itself, so that data and kernels are there for those that are forked behind it.  Writes the line of its verdicts,
whatever else it prints, and in the end ``done`` with the exit code.  A fault that cannot be planted in place gets a
fresh process.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterable

from tests.faults.in_place import UnplantableError, plant_in_place
from tests.faults.planting import FAULTS
from tests.faults.verdicts import verdicts

__all__: list[str] = []

STOPPED = 70  # exit code of a child that nothing was expected of


def load() -> None:
    """Import all that scenarios and tests need."""
    import pytest  # noqa: F401

    from oop_engine.lab.scenario import names
    from tests.parts.scenarios import small  # noqa: F401

    names()


def run(name: str) -> None:
    """Print the verdicts of a scenario."""
    for found in verdicts([name]):
        print(json.dumps(found), flush=True)


def with_fault(fault: str, name: str) -> int:
    """Plant a fault here, try a scenario or a test, return the exit code."""
    test = "::" in name
    if test:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        plant_in_place(FAULTS[fault])
    except UnplantableError:
        module = "tests.faults.with_fault" if test else "tests.faults.verdicts"
        os.execv(sys.executable, [sys.executable, "-m", module, fault, name])
    if not test:
        run(name)
        return 0
    from tests.faults.with_fault import passes

    return passes([name])


def forked(fault: str, name: str) -> int:
    """Return the exit code of a child that tries a scenario or a test with a fault."""
    sys.stdout.flush()
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = STOPPED
    try:
        code = with_fault(fault, name)
    finally:
        sys.stdout.flush()
        os._exit(code)


def main(lines: Iterable[str]) -> None:
    """Serve tries until the input ends."""
    load()
    gc.freeze()  # collections of a child need not copy what it shares
    for line in lines:
        fault, name = json.loads(line)
        if fault:
            print(f"done {forked(fault, name)}", flush=True)
        else:
            run(name)
            print("done 0", flush=True)


if __name__ == "__main__":
    main(sys.stdin)
