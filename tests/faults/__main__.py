"""All claims of all scenarios against all faults: which fault makes which claim fail.

    python -m tests.faults [SCENARIO...]

Prints for each claim the faults under which it fails, and for each fault the claims that notice it.  Ends with 1 if a
claim does not hold without a fault, if no fault makes it fail, or if fewer than two things notice a fault: claims,
errors of comparisons, or the test that it names, which then has to fail.  A claim on times has to fail twice in a row.
Asked for some scenarios alone, faults that these do not notice are no matter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.faults.planting import FAULTS, ROOT, Fault
from tests.faults.verdicts import Verdicts

__all__ = ["Found", "missing", "noticed", "tried"]

SECONDS = 1200  # for all scenarios with one fault
TURNS = 3  # a claim on times may fail on a busy machine
LEAST = 2  # things that are to notice a fault
FAILED = 1  # pytest: tests were run, and some failed
Found = dict[str, Verdicts]
"""Verdicts by scenario."""


def tried(fault: str, scenarios: Sequence[str]) -> Found:
    """Return the verdicts of scenarios with a fault; "": without one."""
    command = [sys.executable, "-m", "tests.faults.verdicts", fault, *scenarios]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {name: Verdicts(name, {}, [], f"longer than {SECONDS} s") for name in scenarios}
    found = {line[0]: Verdicts(*line) for line in map(json.loads, done.stdout.splitlines())}
    last = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
    return {name: found.get(name, Verdicts(name, {}, [], last)) for name in scenarios}


def failing(found: Verdicts) -> set[str]:
    """Return the claims that fail."""
    return {claim for claim, verdict in found.claims.items() if verdict == "fails"}


def without_fault(scenarios: Sequence[str]) -> Found:
    """Return the verdicts without a fault; claims on times that fail are tried again."""
    found = tried("", scenarios)
    for _ in range(TURNS - 1):
        if again := [name for name, of in found.items() if failing(of) & set(of.timed)]:
            for name, of in tried("", again).items():
                timed = {
                    claim: of.claims.get(claim, verdict) for claim, verdict in found[name].claims.items()
                }
                held = {c: v for c, v in timed.items() if c in of.timed and v == "holds"}
                found[name] = found[name]._replace(claims=found[name].claims | held)
    return found


def noticed(fault: str, sound: Found) -> dict[str, set[str]]:
    """Return by scenario the claims that hold without a fault and fail with it, or its error."""
    found, moved = tried(fault, list(sound)), dict[str, set[str]]()
    for name, of in found.items():
        gone = {of.error} if of.error else failing(of) & set(sound[name].claims)
        if timed := gone & set(of.timed):
            gone -= timed - failing(tried(fault, [name])[name])
        if gone:
            moved[name] = gone
    return moved


def found_by_test(fault: Fault) -> bool:
    """Tell whether the test that a fault names fails with it."""
    command = [sys.executable, "-m", "tests.faults.with_fault", fault.name, fault.finds]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=SECONDS, check=False)
    return done.returncode == FAILED


def missing(sound: Found, moved: Mapping[str, Mapping[str, set[str]]]) -> list[tuple[str, str]]:
    """Return the claims that no fault makes fail, each with its scenario."""
    return [
        (name, claim)
        for name, of in sound.items()
        for claim in of.claims
        if not any(claim in by.get(name, ()) for by in moved.values())
    ]


def _table(sound: Found, moved: Mapping[str, Mapping[str, set[str]]]) -> Iterable[str]:
    for name, of in sound.items():
        yield f"\n{name}"
        for claim, verdict in of.claims.items():
            by = [fault for fault, of_fault in moved.items() if claim in of_fault.get(name, ())]
            yield f"  {claim}"
            yield f"    {verdict}; fails by: {'; '.join(by) or 'NO FAULT'}"


def _by_fault(fault: str, of: Mapping[str, set[str]]) -> str:
    return f"{sum(map(len, of.values())):4}  {fault}: {', '.join(of) or 'nothing'}"


def _noticed(name: str, sound: Found, *, tests: bool) -> dict[str, set[str]]:
    """Return what notices a fault: claims by scenario, and the test that it names."""
    found, fault = noticed(name, sound), FAULTS[name]
    return found | ({fault.finds: {fault.finds}} if tests and fault.finds and found_by_test(fault) else {})


def main(asked: Sequence[str]) -> int:
    """Try all faults, print the tables, return the exit code."""
    from tests.scenarios.small import SMALL

    sound = without_fault(list(asked or SMALL))
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
        tries = pool.map(lambda fault: _noticed(fault, sound, tests=not asked), FAULTS)
        moved = {}
        for name, of in zip(FAULTS, tries, strict=True):
            moved[name] = of
            print(_by_fault(name, of), flush=True)
    print(*_table(sound, moved), sep="\n")
    wrong = [
        f"{name}: {verdict} without a fault: {claim}"
        for name, of in sound.items()
        for claim, verdict in of.claims.items()
        if verdict != "holds"
    ]
    wrong += [f"{name}: cannot be compared: {of.error}" for name, of in sound.items() if of.error]
    wrong += [f"{name}: no fault makes it fail: {claim}" for name, claim in missing(sound, moved)]
    if not asked:
        few = {fault: sum(map(len, of.values())) for fault, of in moved.items()}
        wrong += [f"noticed by {many} alone: {fault}" for fault, many in few.items() if many < LEAST]
    print("", *(wrong or ["every claim fails by some fault, and every fault is noticed"]), sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
