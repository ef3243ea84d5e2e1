"""Which claims of scenarios, and which tests, notice each planted fault.

    python -m tests.faults [--all] [SCENARIO...]

Tries each fault with the scenarios and tests that ``planted.toml`` names for it, the quickest first, until two claims
or tests have noticed it and the scenarios that are left have no claim that no fault has moved yet; ``--all``: with all
of them and with all other scenarios.  Prints a line for each try while it runs, then a table of
the faults and one of the claims.  Ends with 1 if a claim does not hold without a fault, if no fault makes it fail, or
if fewer than two claims or tests notice a fault.  A claim on times has to fail twice in a row.  Asked for some
scenarios alone, only their claims are checked.

Verdicts are stored in ``out/faults.jsonl`` as they come: what was interrupted goes on from there, until a source
changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from tests.faults.planting import FAULTS, ROOT
from tests.faults.tries import Tries
from tests.faults.verdicts import Verdicts

__all__ = ["LEAST", "complaints", "failing", "noticed", "of_fault", "sound"]

LEAST = 2  # claims, errors of scenarios, and tests that are to notice a fault
TURNS = 3  # a claim on times may fail on a busy machine
Found = dict[str, Verdicts]
"""Verdicts by scenario."""
Noticed = dict[str, set[str]]
"""The claims of each scenario that notice a fault; of a test its own name."""


def failing(found: Verdicts) -> set[str]:
    """Return the claims that fail."""
    return {claim for claim, verdict in found.claims.items() if verdict == "fails"}


def sound(tries: Tries, scenarios: Sequence[str]) -> Found:
    """Return the verdicts without a fault; claims on times that fail are tried again."""
    found = tries.scenarios("", scenarios)
    for turn in range(1, TURNS):
        again = [name for name, of in found.items() if failing(of) & set(of.timed)]
        for name, of in tries.scenarios("", again, turn).items():
            held = {c: v for c, v in of.claims.items() if c in of.timed and v == "holds"}
            found[name] = found[name]._replace(claims=found[name].claims | held)
    return found


def noticed(tries: Tries, fault: str, without: Found, scenarios: Sequence[str]) -> Noticed:
    """Return by scenario the claims that hold without a fault and fail with it, or its error."""
    moved = Noticed()
    for name, of in tries.scenarios(fault, scenarios).items():
        gone = {of.error} if of.error else failing(of) & set(without[name].claims)
        if timed := gone & set(of.timed):
            gone -= timed - failing(tries.scenarios(fault, [name], 1)[name])
        if gone:
            moved[name] = gone
    return moved


def complaints(without: Found, moved: Mapping[str, Noticed], *, counted: bool) -> list[str]:
    """Return what is wrong; ``counted``: faults were tried with all scenarios and tests that they name."""
    wrong = [f"{name}: cannot be compared: {of.error}" for name, of in without.items() if of.error]
    for name, of in without.items():
        by = set[str]().union(*(found.get(name, set()) for found in moved.values()))
        wrong += [f"{name}: {said} without a fault: {c}" for c, said in of.claims.items() if said != "holds"]
        wrong += [f"{name}: no fault makes it fail: {claim}" for claim in of.claims if claim not in by]
    if counted:
        many = {fault: sum(map(len, of.values())) for fault, of in moved.items()}
        wrong += [f"noticed by {count} alone: {fault}" for fault, count in many.items() if count < LEAST]
    return wrong


def of_fault(
    tries: Tries, without: Found, moved: Mapping[str, Noticed], fault: str, *, tests: bool, every: bool
) -> Noticed:
    """Return what notices a fault: claims by scenario, and of the tests that it names those that fail.

    ``moved`` is what other faults have moved; a scenario or test that can add nothing to both is not tried.
    """
    named = [name for name in (without if every else FAULTS[fault].scenarios) if name in without]
    found = Noticed()
    for name in sorted([*named, *(FAULTS[fault].tests if tests else ())], key=tries.cost):
        if every or sum(map(len, found.values())) < LEAST or _unmoved(without, moved, name):
            if name in without:
                found |= noticed(tries, fault, without, [name])
            elif tries.test(fault, name):
                found[name] = {name}
    return found


def _unmoved(without: Found, moved: Mapping[str, Noticed], name: str) -> set[str]:
    """Return the claims of a scenario that no fault has moved yet."""
    claims = set(without[name].claims) if name in without else set[str]()
    return claims.difference(*(found.get(name, ()) for found in moved.values()))


def _by_fault(moved: Mapping[str, Noticed]) -> Iterable[str]:
    yield "faults, and what notices them"
    for fault, of in moved.items():
        yield f"\n{sum(map(len, of.values())):4}  {fault}"
        for name, claims in of.items():
            yield f"        {name}" if claims == {name} else f"        {name}: {'; '.join(sorted(claims))}"


def _by_claim(without: Found, moved: Mapping[str, Noticed]) -> Iterable[str]:
    yield "\nclaims, and the faults that make them fail"
    for name, of in without.items():
        yield f"\n      {name}"
        for claim in of.claims:
            by = [fault for fault, found in moved.items() if claim in found.get(name, ())]
            yield f"{len(by):4}  {claim}: {'; '.join(by) or 'NO FAULT'}"


def main(arguments: Sequence[str]) -> int:
    """Try all faults, print the tables, return the exit code."""
    from tests.parts.scenarios.small import SMALL

    every, asked = "--all" in arguments, [name for name in arguments if name != "--all"]
    moved = dict[str, Noticed]()
    with Tries(ROOT / "out" / "faults.jsonl") as tries:
        without = sound(tries, asked or list(SMALL))
        for fault in FAULTS:
            moved[fault] = of_fault(tries, without, moved, fault, tests=not asked, every=every)
    wrong = complaints(without, moved, counted=not asked)
    print("", *_by_fault(moved), *_by_claim(without, moved), "", sep="\n")
    print(
        *(wrong or ["every claim fails by some fault, and two things or more notice every fault"]), sep="\n"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
