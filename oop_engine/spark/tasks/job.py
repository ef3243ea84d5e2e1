"""Job: all that the tasks of a query have to know, as one value that travels with it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from oop_engine.core.errors import GraphError
from oop_engine.core.graphs.graph import Plan
from oop_engine.core.registry import Travelling, take_over, travelling
from oop_engine.spark.io.segments import Segments
from oop_engine.spark.plan.key_groups import spread
from oop_engine.spark.plan.pieces import SHARDS, Cut
from oop_engine.spark.plan.routing import Addresses
from oop_engine.system.python_file import user_modules
from oop_engine.traces.format_registry import TraceFormat, foreign_formats, register_format

__all__ = ["Job", "PackedJob", "addresses_of", "check_travels"]


@dataclass(frozen=True)
class Job:
    """``partitions``: into how many a shuffle divides the key groups.

    ``chains``, ``subtasks``: the folders for states of source chains and of subtasks; "": none are kept there.
    ``assignments``: the folder with the assignments of shards; "": key groups are divided evenly, for good.
    ``changes``: the file with the changes that were asked for while the query ran; "": none can be.
    ``formats``, ``registered``: of traces, and parts of others, which tasks would not know by themselves.
    """

    cut: Cut
    addresses: Addresses
    sources: Mapping[str, Segments]
    partitions: int = 1
    chains: str = ""
    subtasks: str = ""
    segments_per_batch: int = 4
    assignments: str = ""
    changes: str = ""
    formats: tuple[TraceFormat, ...] = field(default_factory=foreign_formats)
    registered: Travelling = field(default_factory=travelling)

    def packed(self) -> PackedJob:
        """Return the job as it travels."""
        return PackedJob(base64.b64encode(_pickled(self)).decode())


@dataclass(frozen=True)
class PackedJob:
    """A job as text, such as an option of a data source can carry.

    Workers live for many tasks, and each unpacks a job but once.
    """

    text: str

    @property
    def job(self) -> Job:
        """The job that the driver of this very query has put into ``text``."""
        return _unpacked(self.text)


@lru_cache(maxsize=4)
def _unpacked(text: str) -> Job:
    from pyspark import cloudpickle

    job = cloudpickle.loads(base64.b64decode(text))
    assert isinstance(job, Job)
    for format in job.formats:
        register_format(format)
    take_over(job.registered)
    return job


def addresses_of(cut: Cut, partitions: int) -> Addresses:
    """Return a number for each key group, so that those of a level are in all partitions alike."""
    wanted: list[int] = []
    for level in range(SHARDS, cut.levels + 1):
        groups = sum(component.groups for component in cut.at(level))
        wanted += [group % partitions for group in range(groups)]
    numbers = iter(spread(wanted, partitions))
    by_level = sorted(cut.components, key=lambda component: component.level)
    addresses = {c.number: tuple(next(numbers) for _ in range(c.groups)) for c in by_level}
    return tuple(addresses[component.number] for component in cut.components)


def check_travels(plan: Plan) -> None:
    """Raise ``GraphError`` if an operator cannot be sent to another process."""
    for node in plan.of_kind("operator"):
        try:
            _pickled(node.operator)
        except Exception as error:  # whatever an object of the user raises when it is pickled
            reason = " ".join(str(error).split()) or type(error).__name__
            msg = (
                f"node {node.name!r}: {plan.operator(node.name).describe()} has to travel to the tasks of Spark, and "
                f"cannot be pickled ({reason}): let its functions use plain values, and open files and sockets inside"
            )
            raise GraphError(msg) from error


def _pickled(value: Any) -> bytes:
    """Return ``value`` as bytes, with the modules of the user that a task cannot import."""
    from pyspark import cloudpickle

    for module in user_modules():
        cloudpickle.register_pickle_by_value(module)
    packed: bytes = cloudpickle.dumps(value)
    return packed
