"""Changes: how operators have changed, and the times that have passed the edges to them, as a runner knows it.

A change is given to every source that leads to its operator, or to none: so it is checked here first, against the
operator as it will be by then, and against the times that have passed each edge on its way.  Generators of punctuation
and windows before the operator may be ahead of their source (``Heartbeat``), so it is not enough to look at sources.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from oop_engine.core.change import Change, Reached
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import ContractError, UsageError
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.graphs.leading import leading_to_changing
from oop_engine.core.operator import Message, Operator
from oop_engine.core.punctuation import NEVER
from oop_engine.core.saved import Saved

__all__ = ["Changes"]

Edge = tuple[Stream, str]


class Changes:
    """The operators of ``plan`` that take changes, as they are after all changes so far."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._leading = plan, leading_to_changing(plan)
        self._now: dict[str, Operator] = {name: plan.operator(name) for name in self._leading}
        self._versions = dict[str, int]()
        self._sources = {node.name for node in plan.of_kind("source")}
        leading = set[str]().union(*self._leading.values())
        self._reached: dict[Edge, Reached] = {
            (stream, node): Reached() for stream, node, _ in plan.edges() if node in leading
        }

    def __bool__(self) -> bool:
        """Return whether there are such operators."""
        return bool(self._now)

    def reached(self, stream: Stream, node: str) -> Reached | None:
        """Return the largest time of an edge, to be kept up to date; None: it leads to no such operator."""
        return self._reached.get((stream, node))

    @property
    def largest(self) -> int:
        """The largest time that has passed any of the edges."""
        return max((edge.largest for edge in self._reached.values()), default=NEVER)

    def admitted(self, change: Change, ended: Collection[str] = ()) -> tuple[Change, list[str]]:
        """Return a change with the name of its operator, and the sources that it goes to, which have not ``ended``.

        Raises ``UsageError`` if there is no such operator, ``GraphError`` if it cannot change so, ``ContractError``
        if its time has begun, or a later version was there before.
        """
        change = self.named(change)
        name = change.operator
        if change.version <= self._versions.get(name, change.version - 1):
            msg = (
                f"graph {self._plan.name!r}, operator {name!r}: versions of changes must grow; got {change.version} "
                f"after {self._versions[name]}"
            )
            raise ContractError(msg)
        sources = sorted((self._sources & self._leading[name]) - set(ended))
        self._check(change, sources)
        self.take(change)
        return change, sources

    def named(self, change: Change) -> Change:
        """Return a change with the name of its operator.  Raises ``UsageError`` if there is no such operator."""
        name = change.operator or self._only()
        if name not in self._now:
            self._refuse(
                f"has no operator {name!r} that changes while it runs", did_you_mean(name, self._now)
            )
        return replace(change, operator=name)

    def note(self, source: str, message: Message) -> None:
        """Record a message of a source, where no edges run.  O(rows) if it leads to an operator that changes."""
        for (stream, _), reached in self._reached.items():
            if stream.node == source:
                reached.note(message)

    def written(self, change: Change) -> Change:
        """Return a change that names its operator, with plain values alone (``Operator.written``)."""
        return self._now[change.operator].written(change)

    def take(self, change: Change) -> None:
        """Register a change that names its operator.  Raises ``GraphError`` if it cannot change so."""
        name = change.operator
        self._now[name] = self._now[name].changed(change, self._plan.inputs(name))
        self._versions[name] = change.version

    def _check(self, change: Change, sources: Collection[str]) -> None:
        """Raise ``ContractError`` if its time has begun on an edge from one of ``sources`` to its operator."""
        passed = set(sources)
        for stream, node, _ in self._plan.edges():
            if stream.node in passed and node in self._leading[change.operator]:
                passed.add(node)
                of_source = stream.node in self._sources
                place = f"source {stream.node!r}" if of_source else f"from {stream.node!r} to {node!r}"
                self._reached[stream, node].check(change, f"graph {self._plan.name!r}, {place}")

    def _only(self) -> str:
        if len(self._now) != 1:
            self._refuse("must have one operator that changes while it runs, or the change must name it")
        return next(iter(self._now))

    def _refuse(self, reason: str, hint: str = "") -> None:
        there = f"there are {', '.join(map(repr, self._now))}" if self._now else "there is none"
        msg = f"graph {self._plan.name!r} {reason}; {there}{hint}: make the operator with changing=True"
        raise UsageError(msg)

    def save(self) -> dict[str, Any]:
        """Return everything for a snapshot, but the operators."""
        return {
            "reached": {_edge(*edge): reached.largest for edge, reached in self._reached.items()},
            "versions": self._versions,
        }

    def load(self, saved: Saved, operators: dict[str, Operator], fresh: Collection[str] = ()) -> None:
        """Restore a snapshot; ``operators`` are those that run.  With ``fresh`` nodes edges may be new, which begin."""
        reached, versions = (saved.part(name) if saved else Saved() for name in ("reached", "versions"))
        for number, ((stream, node), edge) in enumerate(self._reached.items()):
            name = _edge(stream, node) if number not in reached else number  # earlier snapshots had a list
            if name in reached or not fresh:
                edge.largest = reached.integer(name)
        known = [name for name in versions if name not in fresh and (name in self._now or not fresh)]
        self._versions = {name: versions.integer(name) for name in known}
        self._now = {name: operators[name] for name in self._now}


def _edge(stream: Stream, node: str) -> str:
    return f"{stream} -> {node}"
