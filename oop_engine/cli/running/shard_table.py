"""The shards of a run on Spark: the load of each in each micro-batch, and when key groups moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group

from oop_engine.lab.report.table import grid
from oop_engine.lab.report.words import count, seconds

if TYPE_CHECKING:
    from oop_engine.spark.plan.balance import Move
    from oop_engine.spark.run import BatchDone

__all__ = ["shard_table"]


def shard_table(how: str, batches: Sequence[BatchDone], moves: Sequence[Move]) -> Group:
    """Return a line a micro-batch: tuples and CPU time of each shard, of all operators in shards together.

    ``most``: the load of the most loaded shard, as a multiple of the mean.  ``moved``: key groups, after the batch.
    """
    shards = max(shard.shard + 1 for batch in batches for shard in batch.shards)
    headings = [
        "batch",
        *(f"shard {number}" for number in range(shards)),
        "most",
        *(f"CPU {number}" for number in range(shards)),
        "run time",
        "moved",
    ]
    lines = [list(_line(batch, shards, moves)) for batch in batches if batch.shards]
    return Group(grid(f"{how}: tuples and CPU time of the shards", headings, lines), *_indivisible(moves))


def _line(batch: BatchDone, shards: int, moves: Sequence[Move]) -> Iterator[str]:
    tuples = [sum(s.tuples for s in batch.shards if s.shard == number) for number in range(shards)]
    spent = [sum(s.spent_s for s in batch.shards if s.shard == number) for number in range(shards)]
    moved = sum(move.groups for move in moves if move.batch == batch.number)
    yield str(batch.number)
    yield from map(count, tuples)
    yield f"{max(tuples) * shards / sum(tuples):.2f}" if any(tuples) else ""
    yield from map(seconds, spent)
    yield seconds(batch.wall_s)
    yield count(moved) if moved else ""


def _indivisible(moves: Sequence[Move]) -> Iterator[str]:
    """Yield a line for each key group that is larger than the share of a shard."""
    for move in moves:
        if move.indivisible is not None:
            yield (
                f"batch {move.batch}: key group {move.indivisible} alone has more than the share of a shard, and a "
                f"group is never divided: {move.after:.2f} times the mean is as even as it gets"
            )
