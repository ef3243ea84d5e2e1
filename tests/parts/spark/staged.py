"""A staged graph in one process: source chains, shuffles and subtasks as on Spark, with a dictionary for a shuffle.

Every subtask is saved and restored between micro-batches, and records come in an order of chance
within what the shuffle promises: so what is tested here is all but Spark itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oop_engine import Graph, Page, Schema
from oop_engine.extend import Message
from oop_engine.spark.plan.balance import Assignments
from oop_engine.spark.plan.cut import cut
from oop_engine.spark.plan.pieces import SHARDS, Cut
from oop_engine.spark.tasks.record import METRICS, Record, unpack_messages
from oop_engine.spark.tasks.source_chain import SourceChainRun
from oop_engine.spark.tasks.subtask import Subtask

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Given:
    """Segments that are there from the start."""

    schema: Schema
    segments: Sequence[Sequence[Message]]
    moments: tuple[tuple[int, int] | None, ...] = ()

    def count(self) -> int:
        return len(self.segments)

    def ended(self) -> bool:
        return True

    def read(self, number: int) -> Iterator[Message]:
        return iter(self.segments[number])

    def clock(self, number: int) -> tuple[int, int] | None:
        return self.moments[number] if self.moments else None


@dataclass
class Staged:
    """Runs ``cut`` over sources, ``per_batch`` segments at a time; ``assignments``: anew for each batch."""

    cut: Cut
    sources: Mapping[str, Given]
    seed: int = 0
    assignments: Callable[[], Assignments] = dict
    states: dict[tuple[str, int], bytes] = field(default_factory=dict)
    results: dict[str, Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = iter(range(1000))
        self.addresses = tuple(tuple(next(numbers) for _ in range(c.groups)) for c in self.cut.components)
        self.random = random.Random(self.seed)
        self.results = {edge.sink: [] for edge in self.cut.edges if edge.component is None}

    def run(self, per_batch: int) -> dict[str, Rows]:
        longest = max(segments.count() for segments in self.sources.values()) + 1
        for start in range(0, longest, per_batch):
            self.batch(start, start + per_batch)
        return self.results

    def batch(self, start: int, stop: int) -> None:
        assignments = self.assignments()
        records = [
            record for chain in self.cut.chains for record in self._chain(chain, start, stop, assignments)
        ]
        for level in range(SHARDS, self.cut.levels + 1):
            records = list(self._level(level, records))
        for record in records:
            if record.edge != METRICS:
                edge = self.cut.edges[record.edge]
                for message in unpack_messages(edge.schema, record.body):
                    assert isinstance(message, Page)
                    self.results[edge.sink] += message.to_pylist()

    def _chain(self, chain: Any, start: int, stop: int, assignments: Assignments) -> list[Record]:
        run = SourceChainRun(self.cut, chain, self.addresses, self.sources[chain.source], assignments)
        if ("head", chain.source) in self.states:
            run.restore(self.states["head", chain.source])
        total = self.sources[chain.source].count() + 1
        records = list(run.run(min(start, total), min(stop, total)))
        self.states["head", chain.source] = run.snapshot()
        return records

    def _level(self, level: int, records: list[Record]) -> Iterator[Record]:
        here = {
            number: (component, group)
            for component in self.cut.at(level)
            for group, number in enumerate(self.addresses[component.number])
        }
        self.random.shuffle(records)
        grouped: dict[int, list[Record]] = {}
        for record in records:
            if record.target in here:
                grouped.setdefault(record.target, []).append(record)
            else:
                yield record
        for number, own in grouped.items():
            component, group = here[number]
            subtask = Subtask(self.cut, component, self.addresses, group)
            if ("copy", number) in self.states and level != SHARDS:
                subtask.restore(self.states["copy", number])
            yield from subtask.run(sorted(own, key=lambda record: (record.seq, record.channel)))
            self.states["copy", number] = subtask.snapshot()


def run_staged(
    graph: Graph, sources: Mapping[str, Given], *, groups: int = 3, per_batch: int = 1, seed: int = 0
) -> dict[str, Rows]:
    """Return the rows of each sink."""
    return Staged(cut(graph, groups=groups), sources, seed).run(per_batch)
