"""Cuts: results do not depend on where pages are cut, from one row to more than every constant inside, by any runner.

``python -m tests.simulation.cuts ROWS``: each case of the contract suite gets two times so many rows an input, with a
bound behind each half, in pages of several sizes, by ``run``, ``replay`` and ``Local``.  Results are the same, as
multisets of whole rows, where they retract as net content.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from oop_engine import Graph, Linear, Page, replay, run
from oop_engine.core.errors import EngineError
from oop_engine.extend import Message
from oop_engine.runners.dispatch import Result
from oop_engine.runners.local import Local
from oop_engine.testing import Case
from tests.cases import all_cases
from tests.simulation.flat import page_of

__all__ = ["OTHERS", "differences"]

KEYS = 60
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
    for size in (rows, 13, rows // 6):
        feeds = _feeds(case, rows, size)
        for name, found in _by_runner(case, feeds):
            contents = _contents(case, found)
            expected = contents if expected is None else expected
            if contents != expected:
                yield f"{case.id}: other results by {name}, in pages of {size} rows"


def _feeds(case: Case, rows: int, size: int) -> Feeds:
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
        outcome = runner(_graph(case), {source: list(feed) for source, feed in feeds.items()})
        yield name, {sink: table.to_pylist() for sink, table in outcome.results.items()}
    yield "Local", asyncio.run(_pushed(case, feeds))


async def _pushed(case: Case, feeds: Feeds) -> Results:
    found = defaultdict[str, list[dict[str, Any]]](list)

    def take(result: Result) -> None:
        if isinstance(result.message, Page):
            found[result.sink] += result.message.to_pylist()

    async def push(source: str) -> None:
        for message in feeds[source]:
            await local.push(source, message)

    async with Local(_graph(case), take) as local:
        await asyncio.gather(*map(push, feeds))
    return found


def _graph(case: Case) -> Graph:
    graph = Graph("cuts")
    sources = [graph.source(f"in{port}", schema) for port, schema in enumerate(case.inputs)]
    made = graph.add("it", case.operator, *sources)
    for port in case.operator.outputs:
        graph.sink(f"out-{port}", made[port])
    return graph


def _contents(case: Case, found: Results) -> list[dict[str, int]]:
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
