"""A process that has all loaded, and forks for each try: ``python -m tests.faults.warm``.

Reads a line of JSON for each try: ``[fault, name]``, of a scenario or a test; without a fault it tries the scenario
itself, so that data and kernels are there for those that are forked behind it.  Writes the line of its verdicts,
whatever else it prints, and in the end ``done`` with the exit code.  A fault that cannot be planted in place gets a
fresh process.  One that slows nothing is told the times that were measured without it.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
from collections.abc import Iterable, Iterator

from oop_engine.lab.scenario import find, names
from oop_engine.scenarios import measured
from oop_engine.scenarios.scotty import slice_latency
from tests.faults.in_place import UnplantableError, plant_in_place
from tests.faults.planting import FAULTS
from tests.faults.times import Times
from tests.faults.verdicts import Verdicts, verdicts

__all__: list[str] = []

STOPPED = 70  # exit code of a child that nothing was expected of
TIMES = Times()


def load() -> None:
    """Import all that scenarios and tests need."""
    import pytest  # noqa: F401

    from tests.parts.scenarios import small  # noqa: F401

    names()
    measured._MORE = 1  # what fails on a busy machine is tried again
    TIMES.watch(measured, "_least")
    TIMES.watch(slice_latency, "each_wait")


def without_fault(name: str) -> Iterator[Verdicts]:
    """Yield the verdicts of a scenario; its times, data and kernels are there for those that are forked from now on."""
    TIMES.record(name)
    yield from verdicts([name])


def forget(name: str) -> None:
    """Let a scenario compute anew what it has cached: it may rest on the engine."""
    for function in vars(sys.modules[find(name).variants.__module__]).values():
        if isinstance(function, functools._lru_cache_wrapper):
            function.cache_clear()


def say(found: Iterable[Verdicts]) -> None:
    """Print verdicts."""
    for one in found:
        print(json.dumps(one), flush=True)


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
    gc.freeze()
    if not test:
        forget(name)
        if FAULTS[fault].slows:
            TIMES.once()
            vars(slice_latency)["TURNS"] = 1
        else:
            TIMES.repeat(name)
        say(verdicts([name]))
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
    gc.freeze()  # collections of a child do not copy what it shares
    for line in lines:
        fault, name = json.loads(line)
        if not fault:
            say(without_fault(name))
        elif "::" not in name and name not in TIMES:  # its verdict is stored from a run that was interrupted
            list(without_fault(name))
        print(f"done {forked(fault, name) if fault else 0}", flush=True)


if __name__ == "__main__":
    main(sys.stdin)
