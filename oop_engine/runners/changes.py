"""Changes: how operators have changed, as a runner knows it at the door.

A change is given to every source that leads to its operator, or to none: so it is checked here first, against
the operator as it will be by then, and against the times that these sources have let through.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oop_engine.core.change import Change, Reached
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.core.graphs.graph import Plan
from oop_engine.core.graphs.leading import leading_to_changing
from oop_engine.core.operator import Message, Operator
from oop_engine.core.saved import Saved

__all__ = ["Changes"]


class Changes:
    """The operators of ``plan`` that take changes, as they are after all changes so far."""

    def __init__(self, plan: Plan) -> None:
        self._plan, leading = plan, leading_to_changing(plan)
        self._now: dict[str, Operator] = {name: plan.operator(name) for name in leading}
        self._versions = dict[str, int]()
        sources = {node.name for node in plan.of_kind("source")}
        self._sources = {name: sorted(sources & before) for name, before in leading.items()}
        self._reached = {name: Reached() for of in self._sources.values() for name in of}

    def __bool__(self) -> bool:
        """Tell whether there are such operators."""
        return bool(self._now)

    def note(self, source: str, message: Message) -> None:
        """Learn of a message of a source.  O(rows) if it leads to an operator that changes, else O(1)."""
        if source in self._reached:
            self._reached[source].note(message)

    def admitted(self, change: Change) -> tuple[Change, list[str]]:
        """Return a change with the name of its operator, and the sources that it goes to.

        Raises ``UsageError`` if there is no such operator, ``GraphError`` if it cannot change so, ``ContractError``
        if its time has begun, or a later version was there before.
        """
        name = change.operator or self._only()
        if name not in self._now:
            self._refuse(f"has no operator {name!r} that changes while it runs")
        if change.version <= self._versions.get(name, change.version - 1):
            msg = (
                f"graph {self._plan.name!r}, operator {name!r}: versions of changes must grow; got {change.version} "
                f"after {self._versions[name]}"
            )
            raise ContractError(msg)
        for source in self._sources[name]:
            self._reached[source].check(change, f"graph {self._plan.name!r}, source {source!r}")
        self._now[name] = self._now[name].changed(change, self._plan.inputs(name))
        self._versions[name] = change.version
        return replace(change, operator=name), self._sources[name]

    def _only(self) -> str:
        if len(self._now) != 1:
            self._refuse("must have one operator that changes while it runs, or the change must name it")
        return next(iter(self._now))

    def _refuse(self, reason: str) -> None:
        there = f"there are {', '.join(map(repr, self._now))}" if self._now else "there is none"
        msg = f"graph {self._plan.name!r} {reason}; {there}: make the operator with changing=True"
        raise UsageError(msg)

    def save(self) -> dict[str, Any]:
        """Return everything for a snapshot, but the operators."""
        return {
            "reached": {name: one.largest for name, one in self._reached.items()},
            "versions": self._versions,
        }

    def load(self, saved: Saved, operators: dict[str, Operator]) -> None:
        """Restore a snapshot; ``operators`` are those that run."""
        reached, versions = saved.part("reached"), saved.part("versions")
        self._reached = {name: Reached(reached.integer(name)) for name in self._reached}
        self._versions = {name: versions.integer(name) for name in versions}
        self._now = {name: operators[name] for name in self._now}
