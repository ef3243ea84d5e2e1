"""Shared windows: aggregates of equal windows and keys over one stream become one operator, with all their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from oop_engine.core.graphs.fingerprint import fingerprint
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.project import Project
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.query.step import QueryStep

__all__ = ["SharedAggregate", "windows_of"]


def windows_of(step: QueryStep) -> Any:
    """Return a key that is equal for steps over one input whose aggregates one operator may make; None: of no others.

    Those with a name of their own, and revision streams, which change with each aggregate, stay as they are.
    """
    made = step.operator
    if type(made) is not WindowAggregate or step.name is not None:
        return None
    plain = WindowAggregate(made.windows, made.aggregates, made.by, stamp=made.stamp)
    if fingerprint(plain) != fingerprint(made):
        return None
    return fingerprint([made.windows, made.by, made.stamp])


@dataclass
class SharedAggregate:
    """The aggregates of several steps: each is made once, under a name that is free."""

    first: WindowAggregate
    aggregates: dict[str, Aggregation] = field(default_factory=dict)

    def add(self, made: WindowAggregate) -> None:
        """Take the aggregates of another step."""
        for name, aggregate in made.aggregates.items():
            if self._name(aggregate) is None:
                self.aggregates[next(new for new in _names(name) if new not in self.aggregates)] = aggregate

    @property
    def operator(self) -> WindowAggregate:
        """The operator of all."""
        first = self.first
        return WindowAggregate(first.windows, self.aggregates, first.by, stamp=first.stamp)

    def results_of(self, step: QueryStep) -> Project:
        """Return the operator that has the results of one step from those of all."""
        made: Any = step.operator
        names = {
            name: self._name(made.aggregates[name]) if name in made.aggregates else name
            for name in step.schemas[0].names
        }
        return Project({name: str(own) for name, own in names.items()})

    def _name(self, aggregate: Aggregation) -> str | None:
        own = fingerprint(aggregate)
        return next((name for name, other in self.aggregates.items() if fingerprint(other) == own), None)


def _names(name: str) -> Iterator[str]:
    yield name
    number = 1
    while True:
        number += 1
        yield f"{name}_{number}"
