"""Node: a source, an operator or a sink of a graph, and the streams that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oop_engine.core.graphs.stream import Stream
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema

__all__ = ["Node"]


@dataclass(frozen=True)
class Node:
    """A source (it has a schema), an operator, or a sink (it has one input and no output)."""

    name: str
    kind: Literal["source", "operator", "sink"]
    inputs: tuple[Stream, ...] = ()
    operator: Operator | None = None
    schema: Schema | None = None

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the output ports."""
        if self.operator is not None:
            return self.operator.outputs
        return ("out",) if self.kind == "source" else ()

    @property
    def input_ports(self) -> tuple[str, ...]:
        """Names of the input ports."""
        if self.operator is not None:
            return self.operator.inputs
        return ("in",) if self.kind == "sink" else ()

    def describe(self) -> str:
        """Return the node in a few words: its kind and parameters."""
        return self.operator.describe() if self.operator is not None else self.kind
