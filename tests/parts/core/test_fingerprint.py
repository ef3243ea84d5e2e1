"""Fingerprints: the same for the same operator in every process, others for others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import Graph, Page, Schema, replay
from oop_engine.core.graphs.fingerprint import fingerprint
from oop_engine.operators import Count, Late, Session, Sliding, Sum, WindowAggregate
from oop_engine.operators.windows import Windows
from oop_engine.testing.case import typed
from oop_engine.windows import Intervals
from tests.children import MOST_S

ROOT = Path(__file__).parents[4]

SPOKEN = """
import sys
from oop_engine.core.graphs.fingerprint import fingerprint
{blank}
class Mine:
    def __init__(self):
        self.names, self.number = {{"c", "a", "b"}}, {number}
        self.function = lambda value: value in {{"x", "y", "z"}} and value != {number}
print(fingerprint([Mine(), Mine]))
"""


def spoken(seed: int, blank: str = "", number: int = 1) -> str:
    command = [sys.executable, "-c", SPOKEN.format(blank=blank, number=number)]
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=MOST_S
    ).stdout


def test_fingerprints_are_the_same_in_all_processes() -> None:
    assert spoken(1) == spoken(2) == spoken(3, blank="#\n\n\n") != spoken(1, number=2)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: {"a": [n, 2.0, "x", b"y", None]},
        lambda n: np.arange(n),
        lambda n: pa.array([n]),
        lambda n: pa.scalar(n),
        lambda n: pc.field("v") + n,
        lambda n: lambda value, other=n: value + other,
        lambda n: partial(max, n),
        lambda n: [].append if n == 1 else {}.update,
        lambda n: Late.DROP if n == 1 else Late.RAISE,
        lambda n: Sum("v") if n == 1 else Count(),
        lambda n: frozenset({n}),
        lambda n: timedelta(seconds=n),
    ],
)
def test_fingerprints_tell_values_apart(make: Callable[[int], object]) -> None:
    assert fingerprint(make(1)) == fingerprint(make(1)) != fingerprint(make(2))


def test_a_value_within_itself_has_a_fingerprint() -> None:
    endless: list[object] = [1]
    endless.append(endless)
    assert fingerprint(endless)


def test_a_graph_that_was_run_has_the_fingerprint_it_had() -> None:
    """Values that are computed once, and kept, are none of its parameters."""
    schema = Schema({"ts": pa.timestamp("s"), "key": pa.int64()}, "ts")
    graph = Graph("counted")
    windows: dict[str, Windows] = {
        "grid": Sliding(20, 5),
        "fixed": Intervals([(0, 10), (20, 30)]),
        "session": Session(3),
    }
    counts = WindowAggregate(windows, {"n": Count()}, by=["key"])
    graph.sink("out", graph.add("counts", counts, graph.source("source", schema)))
    before = fingerprint(counts)
    replay(graph, {"source": [Page.of(schema, {"ts": typed([1, 25], schema.type_of("ts")), "key": [1, 2]})]})
    assert fingerprint(counts) == before
