"""A small graph, for tests of what is around a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine import Graph, Operator, Page, Schema
from oop_engine.operators import Sum, Tumbling, WindowAggregate, WithColumns
from oop_engine.spark.io.segments import Files
from oop_engine.spark.run import pieces_of, run_on_spark
from oop_engine.spark.state.checkpoint import Checkpoint

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")


def page(*times: int) -> Page:
    return Page.of(SCHEMA, {"ts": times, "k": ["a"] * len(times), "v": times})


def of(operator: Operator, width: int = 10) -> Graph:
    """A graph of ``operator``, and of sums behind it."""
    made = Graph("errors")
    made.source("source", SCHEMA)
    made.add("first", operator, "source")
    made.add("sums", WindowAggregate(Tumbling(width), {"sum": Sum("v")}, by=["k"]), "first")
    made.sink("out", "sums")
    return made


def plus(number: int) -> Operator:
    return WithColumns({"v": lambda batch: pc.add(batch["v"], number)})


def run_it(graph: Graph, feed: Any = (), **options: Any) -> None:
    run_on_spark(graph, {"source": feed}, **options)


def checkpoint_of(graph: Graph, folder: Path, *, batch: bool = False) -> None:
    """Make the checkpoint that a first run of ``graph`` makes."""
    source = Files(str(folder), SCHEMA) if folder.exists() else None
    kept = Checkpoint(folder)
    kept.keep(pieces_of(graph), {"source": source} if source else {}, (2, 4), batch=batch)
