"""Agreement: claims on the results of plans, each set against the true answer or against the first plan."""

from __future__ import annotations

from typing import Any

from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Scenario

__all__ = ["agreement_of"]


def agreement_of(scenario: Scenario, runs: list[Run]) -> list[Claim]:
    """Return the claims that come before all others: plans that are to be exact give the true answer.

    Where the truth is not known, all that can be seen is whether they give the same answer.
    """
    exact = [run for run in runs if run.exact]
    known = [run for run in exact if run.checked]
    others = [run for run in exact if run.held_to == "first plan"]
    figures: dict[str, Any] = {
        "runs": len(known),
        "results": sum(run.results for run in known),
        **_off(known),
    }
    if guessing := [run for run in runs if not run.exact]:
        figures["runs that may be off"] = len(guessing)
        figures["missing and wrong in those"] = sum(run.off or 0 for run in guessing)
    if len(known) < len(exact) or not exact:
        figures["not checked"] = next((run.why for run in exact if run.why), _inexact(runs))
    whole = (
        "every plan"
        if not guessing or (scenario.drops_late and not exact)
        else "every plan that is to be exact"
    )
    holds = not figures["missing and wrong"] and (True if len(known) == len(exact) > 0 else None)
    claims = [Claim(f"{whole} gives the brute-force answer: nothing missing, nothing wrong", holds, figures)]
    if others:
        differences = {"runs": len(others), **_off(others)}
        claims.append(
            Claim(
                f"{whole} gives the answer of the first one",
                not differences["missing and wrong"],
                differences,
            )
        )
    return claims


def _inexact(runs: list[Run]) -> str:
    """Return the reason why no plan is to be exact."""
    if late := max((run.late for run in runs), default=0):
        return f"{late:,} tuples were late, and results lack them"
    return "no plan is to be exact"


def _off(runs: list[Run]) -> dict[str, Any]:
    """Return the numbers of missing and wrong results by run."""
    off = {_named(run): f"{run.missing} missing, {run.wrong} wrong" for run in runs if run.off}
    return {"missing and wrong": off}


def _named(run: Run) -> str:
    """Return a run's name among all: its plan, and its parameters."""
    order = "in order" if run.order == "in" else "out of order"
    return f"{order}, {run.variant}, {', '.join(f'{k}={v}' for k, v in run.parameters.items())}".rstrip(", ")
