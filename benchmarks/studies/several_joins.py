"""Several joins: a chain of joins beside one ``MultiJoin``, in CPU seconds and bytes of state.

    python -m benchmarks.studies.several_joins

Three streams of as many tuples are joined by a key, within two seconds of the first one, the anchor.  Settings differ
in how many tuples of each other stream there are for a tuple of the anchor.
"""

from __future__ import annotations

import json
import time
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from oop_engine import Graph, Page, Schema, replay
from oop_engine.operators import Band, BoundedDisorder, Punctuate
from oop_engine.operators.rewrites.multi_join import multi_join

__all__ = ["SETTINGS", "Setting", "several_joins"]

SCHEMA = Schema({"ts": pa.int64(), "key": pa.int64()}, "ts", "ms")
SPAN_MS, BAND_MS, LATE_MS = 200_000, 2_000, 1_900
PAGE, ROUNDS = 8_192, 3


class Setting(NamedTuple):
    """How many ``keys`` there are, and which parts of the other two streams have one of the anchor's."""

    keys: int
    second: float
    third: float


SETTINGS = {
    "1, 1": Setting(2_000, 1, 1),
    "0.1, 10": Setting(200, 0.01, 1),
    "10, 0.1": Setting(200, 1, 0.01),
    "10, 1": Setting(200, 1, 0.1),
    "5, 5": Setting(400, 1, 1),
    "50, 0.05": Setting(40, 1, 0.001),
}
"""By the matches of an anchor tuple in the second stream, and in the third."""


def several_joins(rows: int = 100_000) -> dict[str, dict[str, float]]:
    """Return for each setting CPU seconds and peak bytes of the chain, ``chain_``, and of ``MultiJoin``, ``multi_``."""
    return {name: _measured(setting, rows) for name, setting in SETTINGS.items()}


def _measured(setting: Setting, rows: int) -> dict[str, float]:
    draw, results = np.random.default_rng(1), set()
    found: dict[str, float] = {}
    feed = {
        name: _stream(draw, rows, setting.keys, share)
        for name, share in zip("abc", (1.0, *setting[1:]), strict=True)
    }
    for way, at_once in (("chain", False), ("multi", True)):
        seconds = []
        for _ in range(ROUNDS):
            pages = {name: [Page(SCHEMA, page.batch) for page in some] for name, some in feed.items()}
            start = time.process_time()
            outcome = replay(_graph(at_once), pages)
            seconds.append(time.process_time() - start)
        found |= {f"{way}_s": min(seconds), f"{way}_bytes": float(outcome.statistics.peak.nbytes)}
        results.add(outcome.results["results"].num_rows)
    assert len(results) == 1, results
    return found


def _graph(at_once: bool) -> Graph:
    graph, band = Graph("joins"), Band(BAND_MS, BAND_MS)
    streams = {
        name: graph.add(f"edge-{name}", Punctuate(BoundedDisorder(2_000), 500), graph.source(name, SCHEMA))
        for name in "abc"
    }
    anchor = streams.pop("a")
    joined = multi_join(graph, "joined", anchor, streams, [("key", "key")], band, at_once=at_once)
    graph.sink("results", joined)
    return graph


def _stream(draw: np.random.Generator, rows: int, keys: int, share: float) -> list[Page]:
    """Return tuples of which 30 % are late; but for ``share`` of them they have keys of their own."""
    late = draw.integers(0, LATE_MS, rows) * (draw.random(rows) < 0.3)
    times = np.maximum(np.sort(draw.integers(0, SPAN_MS, rows)) - late, 0)
    key = draw.integers(0, keys, rows)
    key = np.where(draw.random(rows) < share, key, key + keys)
    return [
        Page.of(SCHEMA, {"ts": times[at : at + PAGE], "key": key[at : at + PAGE]})
        for at in range(0, rows, PAGE)
    ]


if __name__ == "__main__":
    print(json.dumps(several_joins(), indent=2))
