"""The outcome of a run on Spark, and the figures of each of its micro-batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from oop_engine.core.change import Change
from oop_engine.core.graphs.statistics import LateTuples, Statistics
from oop_engine.runners.outcome import OnlyTable, in_a_table
from oop_engine.spark.plan.balance import Move
from oop_engine.spark.plan.pieces import Cut

__all__ = ["BatchDone", "ShardDone", "SparkOutcome"]


@dataclass(frozen=True)
class BatchDone:
    """One micro-batch: its number, the tuples that came in with it, results, wall seconds; shards, if there are.

    ``change``: called with a ``Change`` while ``on_batch`` runs, it lets an operator have other windows; they hold from
    the next micro-batch on, and after a restart.  Raises as ``Inline.change`` does, and then nothing has changed.
    """

    number: int
    tuples: int
    results: int
    wall_s: float
    shards: tuple[ShardDone, ...] = ()
    change: Callable[[Change], None] = field(default=lambda change: None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, for JSON."""
        figures = {name: getattr(self, name) for name in ("number", "tuples", "results", "wall_s")}
        return {**figures, "shards": [asdict(shard) for shard in self.shards]}


@dataclass(frozen=True)
class ShardDone:
    """The work of a shard in a micro-batch: its tuples, and the CPU seconds of its task over them."""

    operator: str
    shard: int
    tuples: int
    spent_s: float


@dataclass(repr=False)
class SparkOutcome(OnlyTable):
    """The outcome of a run on Spark.

    ``results``: a table for each sink of the graph if they were kept in ``Memory``, else empty.
    ``tuples``: how many came in since the query was first started.  ``batches``: one by one; the first also
    pays for the modules that Spark and its Python workers load once.  ``start_s``: wall seconds until Spark was there.
    ``moves``: when key groups were moved between shards.  ``refused``: as that of ``Outcome``, where feeds were spooled
    by this call.
    """

    results: dict[str, pa.Table]
    statistics: Statistics
    tuples: int
    batches: list[BatchDone]
    start_s: float
    wall_s: float
    cut: Cut = field(repr=False)
    moves: list[Move] = field(default_factory=list)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return a table of the sinks, with late and refused rows and the seconds."""
        return in_a_table("SparkOutcome", self.results, self.tuples, self.wall_s, self.late, self.refused)

    @property
    def late(self) -> LateTuples:
        """The late tuples since the query was first started: their number at each operator."""
        return self.statistics.late

    @property
    def behind(self) -> LateTuples:
        """The tuples that came behind punctuation inside the graph, likewise."""
        return self.statistics.behind
