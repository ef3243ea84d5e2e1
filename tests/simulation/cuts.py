"""Cuts: results do not depend on where pages are cut, from one row to more than every constant inside, by any runner.

``python -m tests.simulation.cuts ROWS``: each case of the contract suite gets two times so many rows an input, with a
bound behind each half, in pages of several sizes, by ``run``, ``replay``, ``Local`` and ``serve``, which is stopped in
the middle and goes on from its checkpoint.  Results are the same, as multisets of whole rows, where they retract as net
content.  ``tests.simulation.cuts_on_spark``: the same on Spark.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from oop_engine import Graph, Linear, Page, replay, run, serve
from oop_engine.core.errors import EngineError
from oop_engine.extend import Message
from oop_engine.runners.dispatch import Result
from oop_engine.runners.local import Local
from oop_engine.sources import Replayed
from oop_engine.testing import Case
from tests.cases import all_cases
from tests.simulation.flat import page_of

__all__ = ["OTHERS", "contents_of", "differences", "feeds_of", "graph_of", "sizes_of"]

KEYS = 60
SIZES = (1, 7, 1000, 8192, 100_000)
PAGES = 2000  # of a half, at most: smaller pages are for fewer rows
OTHERS = {
    "partial": "partial aggregates follow from pages, and are put together behind them",
    "describe": "its groups are all given to the operator",
    "punctuate-count": "its tuples are late after so many others",
    "sort-timer": "Local has the clock of the wall",
    "arriv": "it depends on the order in which inputs come",
    "as-they-came": "it depends on the order in which inputs come",
    "no_keys": "each tuple has hundreds of partners",
}
"""Parts of the names of cases that such a stream does not suit, and why."""

Feeds = Mapping[str, list[Message]]
Results = Mapping[str, list[dict[str, Any]]]


def differences(case: Case, rows: int) -> Iterator[str]:
    """Yield a line for each size of pages, and runner, that gives other results than one page does."""
    expected = None
    for size in sizes_of(rows):
        feeds = feeds_of(case, rows, size)
        for name, found in _by_runner(case, feeds):
            contents = contents_of(case, found)
            expected = contents if expected is None else expected
            if contents != expected:
                yield f"{case.id}: other results by {name}, in pages of {size} rows"


def sizes_of(rows: int) -> list[int]:
    """Return the sizes of pages that so many rows are cut into, all in one first."""
    return [rows, *(size for size in SIZES if rows / PAGES <= size < rows)]


def feeds_of(case: Case, rows: int, size: int) -> Feeds:
    """Return the messages of each input: two times so many rows, in pages of ``size``, a bound behind each half."""
    feeds = defaultdict[str, list[Message]](list)
    span = rows // 4
    for port in range(len(case.inputs)):
        for half in range(2):
            keys = np.random.default_rng([half, port]).integers(0, KEYS, rows)
            page = page_of(case, port, half, keys, span)
            feeds[f"in{port}"] += [page.slice(at, min(at + size, rows)) for at in range(0, rows, size)]
            feeds[f"in{port}"].append(Linear((half + 1) * span))
    return feeds


def _by_runner(case: Case, feeds: Feeds) -> Iterator[tuple[str, Results]]:
    for name, runner in (("run", run), ("replay", replay)):
        outcome = runner(graph_of(case), {source: list(feed) for source, feed in feeds.items()})
        yield name, {sink: table.to_pylist() for sink, table in outcome.results.items()}
    yield "Local", asyncio.run(_pushed(case, feeds))
    yield "serve", asyncio.run(_served(case, feeds))


async def _pushed(case: Case, feeds: Feeds) -> Results:
    found = defaultdict[str, list[dict[str, Any]]](list)

    def take(result: Result) -> None:
        if isinstance(result.message, Page):
            found[result.sink] += result.message.to_pylist()

    async def push(source: str) -> None:
        for message in feeds[source]:
            await local.push(source, message)

    async with Local(graph_of(case), take) as local:
        await asyncio.gather(*map(push, feeds))
    return found


async def _served(case: Case, feeds: Feeds) -> Results:
    """Return the results of a service that is stopped when half of the messages have come, and started again."""
    found = defaultdict[str, list[dict[str, Any]]](list)

    async def items(feed: list[Message], halt: Halt | None, first: int) -> AsyncIterator[Message]:
        for at in range(first, len(feed)):
            if halt is not None and 2 * at >= len(feed):
                await halt.wait()
            yield feed[at]

    with TemporaryDirectory() as folder:
        for halt in (Halt(len(feeds)), None):
            await serve(
                graph_of(case),
                {name: Replayed(partial(items, feed, halt)) for name, feed in feeds.items()},
                {name: partial(_take, found[name]) for name in sinks_of(case)},
                checkpoint=folder, stop=None if halt is None else halt.stop, progress_every_s=None,
            )  # fmt: skip
    return found


def _take(rows: list[dict[str, Any]], page: Page) -> None:
    rows += page.to_pylist()


class Halt:
    """The middle of a service: it is stopped once each of its sources has come there."""

    def __init__(self, sources: int) -> None:
        self.stop, self._sources = asyncio.Event(), sources

    async def wait(self) -> None:
        self._sources -= 1
        if not self._sources:
            self.stop.set()
        await asyncio.Event().wait()


def graph_of(case: Case) -> Graph:
    """Return the operator of a case between its sources and sinks."""
    graph = Graph("cuts")
    sources = [graph.source(f"in{port}", schema) for port, schema in enumerate(case.inputs)]
    made = graph.add("it", case.operator, *sources)
    for port in case.operator.outputs:
        graph.sink(f"out-{port}", made[port])
    return graph


def sinks_of(case: Case) -> list[str]:
    return [f"out-{port}" for port in case.operator.outputs]


def contents_of(case: Case, found: Results) -> list[dict[str, int]]:
    """Return how often each row is in the results of each output, retracted ones taken away."""
    contents = []
    schemas = case.operator.output_schemas(case.inputs)
    for port, schema in zip(case.operator.outputs, schemas, strict=True):
        times = Counter[str]()
        for row in found.get(f"out-{port}", []):
            sign = 1 if schema.change is None else row.pop(schema.change)
            rounded = {
                name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()
            }
            times[repr(rounded)] += sign
        contents.append({row: count for row, count in times.items() if count})
    return contents


def main() -> int:
    logging.getLogger("oop_engine").setLevel(logging.ERROR)  # bounds come with the feeds
    wrong = 0
    for case in all_cases():
        if any(part in case.id for part in OTHERS):
            continue
        try:
            found = list(differences(case, int(sys.argv[1])))
        except EngineError as error:  # sums of random numbers may be beyond 64 bits
            found = [f"{case.id}: refused: {error}"]
        wrong += sum("other results" in line for line in found)
        print("\n".join(found or [f"{case.id}: the same"]), flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
