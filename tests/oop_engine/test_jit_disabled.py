"""Under ``NUMBA_DISABLE_JIT=1`` counts by keys of text are right, and a line tells which kernels fail."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.children import MOST_S

CODE = """
import pyarrow as pa
from oop_engine import Graph, Schema, run
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Tumbling, WindowAggregate

schema = Schema({"ts": pa.int64(), "name": pa.string()}, "ts", "s")
graph = Graph("g")
edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("in", schema))
graph.sink("out", graph.add("window", WindowAggregate(Tumbling(12), {"n": Count()}, by=("name",)), edge))
rows = [{"ts": n ^ 3, "name": "abc"[n % 3] * 20} for n in range(60)]
print(run(graph, {"in": rows}).table["n"].to_pylist())
"""


def test_counts_by_text_are_right_and_other_kernels_are_named() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=MOST_S, check=False
    )
    assert done.stdout.split("\n")[0] == str([4] * 15), done.stderr
    assert "NUMBA_DISABLE_JIT is set" in done.stderr
