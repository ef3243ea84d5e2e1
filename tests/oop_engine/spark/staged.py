"""A staged graph in one process: heads, shuffles and copies as on Spark, with a dictionary for a shuffle.

Every copy is saved and restored between micro-batches, and letters come in an order of chance
within what the shuffle promises: so what is tested here is all but Spark itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oop_engine import Graph, Message, Page, Schema
from oop_engine.spark.plan.balance import Maps
from oop_engine.spark.plan.cut import SHARDS, Cut, cut
from oop_engine.spark.tasks.record import NOTE, Letter, unpack_letter
from oop_engine.spark.tasks.source_chain import HeadRun
from oop_engine.spark.tasks.subtask import Copy

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Given:
    """Slices that are there from the start."""

    schema: Schema
    slices: Sequence[Sequence[Message]]
    moments: tuple[tuple[int, int] | None, ...] = ()

    def count(self) -> int:
        return len(self.slices)

    def ended(self) -> bool:
        return True

    def read(self, number: int) -> Iterator[Message]:
        return iter(self.slices[number])

    def clock(self, number: int) -> tuple[int, int] | None:
        return self.moments[number] if self.moments else None


@dataclass
class Staged:
    """Runs ``cut`` over sources, ``per_batch`` slices at a time; ``maps``: those of shards, anew for each batch."""

    cut: Cut
    sources: Mapping[str, Given]
    seed: int = 0
    maps: Callable[[], Maps] = dict
    states: dict[tuple[str, int], bytes] = field(default_factory=dict)
    results: dict[str, Rows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = iter(range(1000))
        self.addresses = tuple(tuple(next(numbers) for _ in range(c.groups)) for c in self.cut.components)
        self.random = random.Random(self.seed)
        self.results = {edge.sink: [] for edge in self.cut.edges if edge.component is None}

    def run(self, per_batch: int) -> dict[str, Rows]:
        longest = max(slices.count() for slices in self.sources.values()) + 1
        for start in range(0, longest, per_batch):
            self.batch(start, start + per_batch)
        return self.results

    def batch(self, start: int, stop: int) -> None:
        maps = self.maps()
        letters = [letter for head in self.cut.heads for letter in self._head(head, start, stop, maps)]
        for level in range(SHARDS, self.cut.levels + 1):
            letters = list(self._level(level, letters))
        for letter in letters:
            if letter.edge != NOTE:
                edge = self.cut.edges[letter.edge]
                for message in unpack_letter(edge.schema, letter.body):
                    assert isinstance(message, Page)
                    self.results[edge.sink] += message.to_pylist()

    def _head(self, head: Any, start: int, stop: int, maps: Maps) -> list[Letter]:
        run = HeadRun(self.cut, head, self.addresses, self.sources[head.source], maps)
        if ("head", head.source) in self.states:
            run.restore(self.states["head", head.source])
        total = self.sources[head.source].count() + 1
        letters = list(run.run(min(start, total), min(stop, total)))
        self.states["head", head.source] = run.snapshot()
        return letters

    def _level(self, level: int, letters: list[Letter]) -> Iterator[Letter]:
        here = {
            number: (component, group)
            for component in self.cut.at(level)
            for group, number in enumerate(self.addresses[component.number])
        }
        self.random.shuffle(letters)
        grouped: dict[int, list[Letter]] = {}
        for letter in letters:
            if letter.target in here:
                grouped.setdefault(letter.target, []).append(letter)
            else:
                yield letter
        for number, own in grouped.items():
            component, group = here[number]
            copy = Copy(self.cut, component, self.addresses, group)
            if ("copy", number) in self.states and level != SHARDS:
                copy.restore(self.states["copy", number])
            yield from copy.run(sorted(own, key=lambda letter: (letter.seq, letter.channel)))
            self.states["copy", number] = copy.snapshot()


def run_staged(
    graph: Graph, sources: Mapping[str, Given], *, groups: int = 3, per_batch: int = 1, seed: int = 0
) -> dict[str, Rows]:
    """Return the rows of each sink."""
    return Staged(cut(graph, groups=groups), sources, seed).run(per_batch)
