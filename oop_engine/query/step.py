"""Step: an operator of a query and the outputs that it reads.

A query is a tree of steps that share their inputs.  A step has no name yet, or one that was asked for: nodes get
theirs when the graph is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from oop_engine.core.graphs.acceptance import check_accepts
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema
from oop_engine.query.event_time import EventTime

__all__ = ["QueryStep", "StepOutput", "of_operator", "of_source", "steps_of"]


@dataclass(frozen=True, eq=False)
class QueryStep:
    """A source, or an operator with its inputs.

    A node of it is called ``name``, or without one like ``hint``.  ``feed`` is read by a source that is given no other.
    ``unbounded``: why its state has no end over a source that has none.
    ``measure`` makes the operator, once it is known how far out of order the feed is.
    """

    hint: str
    schemas: tuple[Schema, ...]
    inputs: tuple[StepOutput, ...] = ()
    operator: Operator | None = None
    name: str | None = None
    feed: Any = None
    unbounded: str | None = None
    measure: EventTime | None = None

    def named(self, name: str) -> QueryStep:
        """Return the same step under a name."""
        return replace(self, name=name)


@dataclass(frozen=True, eq=False)
class StepOutput:
    """One output port of a step."""

    step: QueryStep
    port: int = 0

    @property
    def schema(self) -> Schema:
        """The columns of the output; late records have those of the others."""
        return self.step.schemas[min(self.port, len(self.step.schemas) - 1)]


def of_source(name: str, schema: Schema, feed: Any = None) -> StepOutput:
    """Return a source."""
    return StepOutput(QueryStep(name, (schema,), name=name, feed=feed))


def of_operator(
    hint: str, operator: Operator, *inputs: StepOutput,
    unbounded: str | None = None, measure: EventTime | None = None,
) -> StepOutput:  # fmt: skip
    """Return the first output of ``operator`` over ``inputs``; raises ``GraphError`` if they do not fit."""
    schemas = tuple(stream.schema for stream in inputs)
    check_accepts(hint, operator, schemas, ((stream.step.hint, stream.step.operator) for stream in inputs))
    return StepOutput(
        QueryStep(hint, operator.output_schemas(schemas), inputs, operator, None, None, unbounded, measure)
    )


def steps_of(output: StepOutput) -> Iterator[tuple[QueryStep, int]]:
    """Yield each step of a query once for each port of it that is read, those that are read first."""
    seen: set[tuple[int, int]] = set()
    waiting = [output]
    while waiting:
        stream = waiting.pop()
        if (id(stream.step), stream.port) not in seen:
            seen.add((id(stream.step), stream.port))
            waiting += stream.step.inputs
            yield stream.step, stream.port
