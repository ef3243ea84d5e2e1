"""Verdicts: the claims of scenarios in a process of their own, with a fault or without one.

    python -m tests.faults.verdicts FAULT SCENARIO...

The fault is planted before anything of the engine is imported; "": none.  Prints a line of JSON for each scenario: its
claims and their verdicts, and the error if it could not be compared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.faults.planting import FAULTS, plant

__all__ = ["Verdicts"]


class Verdicts(NamedTuple):
    """What the claims of a scenario say: verdicts by claim, those that rest on times, or an error in place of all."""

    scenario: str
    claims: dict[str, str]
    timed: list[str]
    error: str = ""


def verdicts(scenarios: Sequence[str]) -> Iterator[Verdicts]:
    """Yield what the claims of scenarios say: small, or as large as those on times need."""
    from oop_engine.lab.comparison import compare
    from oop_engine.lab.scenario import Timed
    from tests.parts.scenarios.small import LARGER, SMALL, small

    for name in scenarios:
        try:
            asked = LARGER.get(name) or SMALL[name]
            found = compare(small(name, asked), asked.settings).claims
        except Exception as error:  # whatever a fault leads to
            yield Verdicts(name, {}, [], f"{type(error).__name__}: {error}")
            continue
        said: dict[str, str] = {claim.claim: claim.verdict for claim in found}
        yield Verdicts(name, said, [claim.claim for claim in found if isinstance(claim, Timed)])


if __name__ == "__main__":
    planted, *asked = sys.argv[1:]
    if planted:
        plant(FAULTS[planted])
    for found in verdicts(asked):
        print(json.dumps(found), flush=True)
