"""Several joins: a chain of joins beside one ``MultiJoin``, in CPU seconds and bytes of state.

    python -m benchmarks.studies.several_joins

Streams of as many tuples are joined by a key, within two seconds of the first one, the anchor.  Settings differ in
how many tuples of each other stream there are for a tuple of the anchor, and in whether some keys are frequent.
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
NAMES = "abcde"


class Setting(NamedTuple):
    """How many ``keys`` there are, which parts of the other streams have one of the anchor's, and how skewed keys are.

    ``zipf``: a key of rank r comes with probability 1 / r ** zipf.
    """

    keys: int
    shares: tuple[float, ...]
    zipf: float = 0.0


SETTINGS = {
    "1, 1": Setting(2_000, (1, 1)),
    "0.1, 10": Setting(200, (0.01, 1)),
    "10, 0.1": Setting(200, (1, 0.01)),
    "10, 1": Setting(200, (1, 0.1)),
    "5, 5": Setting(400, (1, 1)),
    "50, 0.05": Setting(40, (1, 0.001)),
    "1, 1, 1, 1": Setting(2_000, (1, 1, 1, 1)),
    "3, 3, 3": Setting(667, (1, 1, 1)),
    "10, 1, 0.1, 0.1": Setting(200, (1, 0.1, 0.01, 0.01)),
    "0.1, 0.1, 1, 10": Setting(200, (0.01, 0.01, 0.1, 1)),
    "1, 1, 1, skewed": Setting(20_000, (1, 1, 1), zipf=0.6),
    "12, 0.1, skewed": Setting(2_000, (1, 0.01), zipf=0.9),
}
"""By the matches of an anchor tuple in each other stream, in the order of the chain."""


def several_joins(rows: int = 100_000) -> dict[str, dict[str, float]]:
    """Return for each setting CPU seconds and peak bytes of the chain, ``chain_``, and of ``MultiJoin``, ``multi_``."""
    return {name: _measured(setting, rows) for name, setting in SETTINGS.items()}


def _measured(setting: Setting, rows: int) -> dict[str, float]:
    draw, results = np.random.default_rng(1), set()
    found: dict[str, float] = {}
    feed = {
        name: _stream(draw, rows, setting, share)
        for name, share in zip(NAMES, (1.0, *setting.shares), strict=False)
    }
    for way, at_once in (("chain", False), ("multi", True)):
        seconds = []
        for _ in range(ROUNDS):
            pages = {name: [Page(SCHEMA, page.batch) for page in some] for name, some in feed.items()}
            start = time.process_time()
            outcome = replay(_graph(list(feed), at_once), pages)
            seconds.append(time.process_time() - start)
        found |= {f"{way}_s": min(seconds), f"{way}_bytes": float(outcome.statistics.peak.nbytes)}
        results.add(outcome.results["results"].num_rows)
        found["results"] = float(outcome.results["results"].num_rows)
    assert len(results) == 1, results
    return found


def _graph(names: list[str], at_once: bool) -> Graph:
    graph, band = Graph("joins"), Band(BAND_MS, BAND_MS)
    streams = {
        name: graph.add(f"edge-{name}", Punctuate(BoundedDisorder(2_000), 500), graph.source(name, SCHEMA))
        for name in names
    }
    anchor = streams.pop(names[0])
    joined = multi_join(graph, "joined", anchor, streams, [("key", "key")], band, at_once=at_once)
    graph.sink("results", joined)
    return graph


def _stream(draw: np.random.Generator, rows: int, setting: Setting, share: float) -> list[Page]:
    """Return tuples of which 30 % are late; but for ``share`` of them they have keys of their own."""
    late = draw.integers(0, LATE_MS, rows) * (draw.random(rows) < 0.3)
    times = np.maximum(np.sort(draw.integers(0, SPAN_MS, rows)) - late, 0)
    chances = 1.0 / np.arange(1, setting.keys + 1) ** setting.zipf
    key = draw.choice(setting.keys, rows, p=chances / chances.sum())
    key = np.where(draw.random(rows) < share, key, key + setting.keys)
    return [
        Page.of(SCHEMA, {"ts": times[at : at + PAGE], "key": key[at : at + PAGE]})
        for at in range(0, rows, PAGE)
    ]


if __name__ == "__main__":
    print(json.dumps(several_joins(), indent=2))
