"""Served: the work of a service in one process, and its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oop_engine.core.graphs.statistics import Statistics
from oop_engine.service.inlet import Inlet

__all__ = ["Kept", "Served", "served_of"]


@dataclass(frozen=True)
class Served:
    """The work of a service in this process.

    ``epochs``: checkpoints (or, without a folder, commits).  ``over``: all streams have ended, and all results are out.
    ``tuples``: by source, how many went in.  ``unreadable``: by source and reason, how many rows were left out.
    ``refused``: by sink and reason, how many results its server did not take.
    ``nulls``: by source and column, how many rows that went in had no value: null, or a column of another name.
    ``unknown``: by source and name, how many rows came with a column that the schema does not have, and that was left
    out; of the first 50 names, and of "other columns".
    """

    epochs: int
    over: bool
    tuples: dict[str, int]
    unreadable: dict[str, dict[str, int]]
    nulls: dict[str, dict[str, int]]
    unknown: dict[str, dict[str, int]]
    statistics: Statistics = field(repr=False)
    refused: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Kept:
    """A checkpoint of this process: its number, when it was taken (seconds since 1970), and its costs.

    ``still_s``: how long nothing was read; ``took_s``: until it was recorded and results were visible.
    """

    epoch: int
    at: float
    still_s: float
    took_s: float
    nbytes: int


def served_of(
    epochs: int,
    over: bool,
    inlets: Mapping[str, Inlet],
    unreadable: dict[str, dict[str, int]],
    refused: dict[str, dict[str, int]],
    statistics: Statistics,
) -> Served:
    """Return the work of a service, by the counts of its sources."""
    tuples = {name: inlet.tuples for name, inlet in inlets.items()}
    nulls = {name: inlet.nulls for name, inlet in inlets.items()}
    unknown = {name: inlet.unknown for name, inlet in inlets.items()}
    return Served(epochs, over, tuples, unreadable, nulls, unknown, statistics, refused)
