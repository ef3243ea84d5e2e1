"""Many graphs in one: what a query costs on Spark is paid once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oop_engine import Change, Graph
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.extend import Message
from oop_engine.runners.changes import Changes
from oop_engine.spark.plan.cut import cut
from oop_engine.spark.run import run_on_spark
from tests.parts.spark.staged import Given, Rows, Staged


@dataclass
class Together:
    """Graphs side by side, each with messages for its sources; results come back by the graph's number."""

    graph: Graph = field(default_factory=lambda: Graph("together"))
    sources: dict[str, Any] = field(default_factory=dict)
    count: int = 0

    def add(self, graph: Graph, feeds: Mapping[str, Sequence[Sequence[Message]]]) -> int:
        """Add ``graph``; ``feeds``: for each source its messages, in segments."""
        plan = graph.plan()
        schemas = {node.name: plan.schema(Stream(node.name)) for node in plan.of_kind("source")}
        segments = {
            name: [[self._sent(plan, message) for message in said] for said in of]
            for name, of in feeds.items()
        }
        return self.join(graph, {name: Given(schemas[name], of) for name, of in segments.items()})

    def _sent(self, plan: Plan, message: Message) -> Message:
        """Return a change as it is sent, by the name that its operator has here; other messages as they are."""
        if not isinstance(message, Change):
            return message
        door = Changes(plan)
        named = door.named(message)
        return replace(door.written(named), operator=f"g{self.count}-{named.operator}")

    def join(self, graph: Graph, sources: Mapping[str, Any]) -> int:
        """Add ``graph`` with its sources in segments."""
        number, self.count = self.count, self.count + 1
        for node in graph.plan().nodes:
            inputs = [Stream(f"g{number}-{s.node}", s.port) for s in node.inputs]
            name = f"g{number}-{node.name}"
            if node.schema is not None:
                self.graph.source(name, node.schema)
                self.sources[name] = sources[node.name]
            elif node.operator is None:
                self.graph.sink(name, inputs[0])
            else:
                self.graph.add(name, node.operator, *inputs)
        return number

    def run(self, spark: Any, *, batch: bool = False, per_batch: int = 2) -> list[dict[str, Rows]]:
        """Run all graphs on Spark; return for each the rows of its sinks."""
        outcome = run_on_spark(
            self.graph, self.sources, spark=spark, batch=batch, groups=3, segments_per_batch=per_batch
        )
        return self._parted({name: table.to_pylist() for name, table in outcome.results.items()})

    def run_staged(self, **how: Any) -> list[dict[str, Rows]]:
        """Run all graphs without Spark."""
        return self._parted(Staged(cut(self.graph, groups=3), self.sources, **how).run(per_batch=2))

    def _parted(self, results: Mapping[str, Rows]) -> list[dict[str, Rows]]:
        found: list[dict[str, Rows]] = [{} for _ in range(self.count)]
        for name, rows in results.items():
            number, sink = re.fullmatch(r"g(\d+)-(.*)", name).groups()  # type: ignore[union-attr]
            found[int(number)][sink] = rows
        return found


def in_segments(messages: Sequence[Message], count: int) -> list[list[Message]]:
    """Return messages in ``count`` segments, as even as can be."""
    bounds = [len(messages) * i // count for i in range(count + 1)]
    return [list(messages[start:stop]) for start, stop in itertools.pairwise(bounds)]
