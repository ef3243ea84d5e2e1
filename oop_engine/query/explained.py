"""Explaining a query: its graph, when results are emitted, the state until then, and whether that has an end."""

from __future__ import annotations

from oop_engine.lab.report.answering import answering
from oop_engine.lab.report.contract import contract
from oop_engine.query.graph_of import Built

__all__ = ["explained"]


def explained(made: Built) -> str:
    """Return the plan in words, some lines."""
    lines = [made.graph.text()]
    for title, found in answering(made.graph.plan(), contract):
        lines += ["", title, *(f"  {name}  {words}" for name, words in found)]
    lines += ["", "state"]
    lines += [f"  {name}  without an end: {why}" for name, why in made.unbounded.items()]
    if not made.unbounded:
        lines.append("  bounded, while the bounds of the sources grow")
    return "\n".join(lines)
