# Long: two passes over a source, and what the tasks of the first leave for the second.
"""Measuring disorder at scale: lateness by source and by group, in two passes over slices, without collecting.

The slices of a source are cut into runs, a task each.

    1   the largest time of each run, of all and of each group
    2   how late every tuple of a run is, with what the runs before it have seen at most

Lateness goes into histograms of fixed size that are added up (``traces.lateness``), so the figures
are those of the embedded ``profile``.  What runs tell of their groups stays in files; a task and the driver
keep as many numbers as there are groups.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.group_index import GroupIndex
from oop_engine.core.punctuation import NEVER
from oop_engine.pipeline.sliced import Sliced
from oop_engine.spark.session.failures import failure_of
from oop_engine.traces.lateness import Histogram, OwnLateness
from oop_engine.traces.profile import GroupProfile, Lateness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["InTasks", "Measured", "SourceProfile", "in_spark", "measure"]

Ints = NDArray[np.int64]
InTasks: TypeAlias = Callable[[Sequence[Any], Callable[[Any], Any]], list[Any]]
"""Does a work for each of some jobs, anywhere, and returns the answers in their order."""

_MOST_GROUPS = 20
_DDL = "at int, body binary"


@dataclass(frozen=True)
class SourceProfile:
    """The disorder of a source, as ``traces.profile`` has it; values in the unit of the progressing attribute.

    ``own_lateness``: behind the largest value of the own group.  ``groups``: the largest ones, of ``groups_known``.
    """

    source: str
    tuples: int
    unit: str
    first: int
    last: int
    rate: float
    lateness: Lateness
    by: tuple[str, ...]
    own_lateness: Lateness | None
    groups_known: int
    groups: tuple[GroupProfile, ...]


@dataclass(frozen=True)
class Measured:
    """A profile and the histograms it was made of, of which a policy wants more quantiles."""

    profile: SourceProfile
    lateness: Histogram
    own: Histogram

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as for JSON."""
        return {"profile": asdict(self.profile), "lateness": _bins(self.lateness), "own": _bins(self.own)}

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Measured:
        """Return what ``to_dict`` told."""
        said = dict(told["profile"])
        said |= {key: said[key] and Lateness(**said[key]) for key in ("lateness", "own_lateness")}
        said["by"] = tuple(said["by"])
        said["groups"] = tuple(GroupProfile(**group) for group in said["groups"])
        return cls(SourceProfile(**said), _histogram(told["lateness"]), _histogram(told["own"]))


@dataclass(frozen=True)
class _Run:
    """Some slices of a source, one after the other; ``number``: among the runs of the source."""

    source: str
    slices: Sliced
    by: tuple[str, ...]
    number: int
    start: int
    stop: int
    folder: str

    def file(self, what: str) -> Path:
        return Path(self.folder) / f"{self.source}-{self.number:04d}.{what}.arrow"

    def pages(self) -> Iterator[tuple[Ints, list[pa.Array]]]:
        """Yield the times and the key columns, page by page; nothing else is read."""
        schema = self.slices.schema.select(list(dict.fromkeys([self.slices.schema.progressing, *self.by])))
        narrow = Sliced(self.slices.folder, schema, None, self.slices.clocks)
        for page in narrow.pages(self.start, self.stop):
            yield page.times, [page.column(name) for name in self.by]

    def index(self) -> GroupIndex:
        return GroupIndex([self.slices.schema.type_of(name) for name in self.by])


@dataclass
class _Found:
    """What a run tells of itself."""

    tuples: int
    first: int
    last: int
    lateness: Histogram
    own: Histogram


def measure(
    in_tasks: InTasks, sources: Mapping[str, Sliced], by: tuple[str, ...], folder: Path, tasks: int
) -> dict[str, Measured]:
    """Return the disorder of each source; ``folder`` is for what tasks leave to each other.

    ``in_tasks``: what does the work (see ``in_spark``); ``tasks``: how many may run at once.  O(n log page)
    time, twice the reading of time and key columns.
    """
    each = max(1, -(-2 * tasks // max(len(sources), 1)))
    runs = [run for name in sources for run in _runs(name, sources[name], by, folder, each)]
    folder.mkdir(parents=True, exist_ok=True)
    largest: list[int] = in_tasks(runs, _largest)
    before = [_before(runs, largest, at) for at in range(len(runs))]
    found: list[_Found] = in_tasks([*zip(runs, before, strict=True)], _lateness)
    return {
        name: _measured([run for run in runs if run.source == name], [
            one for run, one in zip(runs, found, strict=True) if run.source == name
        ])
        for name in sources
    }  # fmt: skip


def _runs(name: str, slices: Sliced, by: tuple[str, ...], folder: Path, count: int) -> list[_Run]:
    cuts = np.linspace(0, slices.count(), min(count, slices.count()) + 1).astype(int).tolist()
    return [
        _Run(name, slices, by, number, start, stop, str(folder))
        for number, (start, stop) in enumerate(itertools.pairwise(cuts))
    ]


def in_spark(spark: SparkSession) -> InTasks:
    """Return what does each of some jobs in a task of Spark, and returns the answers at the driver."""

    def do(jobs: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for at in batch.column(0).to_pylist():
                    body = pickle.dumps(work(jobs[at]))
                    yield pa.RecordBatch.from_pydict({"at": pa.array([at], pa.int32()), "body": [body]})

        with failure_of():
            rows = spark.range(0, len(jobs), 1, len(jobs)).mapInArrow(run, _DDL).toArrow().to_pylist()
        told = {row["at"]: pickle.loads(row["body"]) for row in rows}
        return [told[at] for at in range(len(jobs))]

    return do


def _largest(run: _Run) -> int:
    """First pass: return the largest time of a run, and leave those of its groups in a file."""
    index, largest, tops = run.index(), NEVER, np.full(0, NEVER)
    for times, keys in run.pages():
        largest = max(largest, int(times.max()))
        if run.by:
            slots = index.encode(keys)
            tops = np.concatenate([tops, np.full(len(index) - len(tops), NEVER)])
            np.maximum.at(tops, slots, times)
    _leave(run, "largest", index, np.arange(len(tops)), {"largest": tops})
    return largest


def _before(runs: list[_Run], largest: list[int], at: int) -> int:
    earlier = [top for run, top in zip(runs[:at], largest, strict=False) if run.source == runs[at].source]
    return max(earlier, default=NEVER)


def _lateness(job: tuple[_Run, int]) -> _Found:
    """Second pass: return how late the tuples of a run are, after the runs before it."""
    run, before = job
    index, lateness, own = run.index(), Histogram(), Histogram()
    within = OwnLateness(index)
    for number in range(run.number if run.by else 0):
        earlier = _left(run, number, "largest")
        slots = index.encode(earlier.columns[:-1])
        within.add(earlier.column("largest").to_numpy(), slots)
    tuples, first, last = 0, -NEVER, before
    sums = np.zeros((4, len(index)))  # (tuples, out of order, most, behind; groups)
    for times, keys in run.pages():
        behind = np.maximum(np.maximum.accumulate(times), last) - times
        lateness.add(behind)
        tuples, first, last = tuples + len(times), min(first, int(times.min())), max(last, int(times.max()))
        if run.by:
            slots = index.encode(keys)
            late = within.add(times, slots)
            own.add(late)
            sums = _summed(sums, len(index), slots, late, behind)
    seen = np.flatnonzero(sums[0])
    _leave(run, "groups", index, seen, {what: sums[row, seen] for row, what in enumerate(_SUMS)})
    return _Found(tuples, first, last, lateness, own)


_SUMS = ("tuples", "out_of_order", "most", "behind")


def _summed(
    sums: NDArray[np.float64], size: int, slots: Ints, late: Ints, behind: Ints
) -> NDArray[np.float64]:
    sums = np.pad(sums, ((0, 0), (0, size - sums.shape[1])))
    sums[0] += np.bincount(slots, minlength=size)
    sums[1] += np.bincount(slots, late > 0, size)
    np.maximum.at(sums[2], slots, late)
    sums[3] += np.bincount(slots, behind, size)
    return sums


def _leave(run: _Run, what: str, index: GroupIndex, slots: Ints, columns: Mapping[str, Any]) -> None:
    if not run.by:
        return
    names = [*(f"key {name}" for name in run.by), *columns]
    table = pa.RecordBatch.from_arrays([*index.keys(slots), *map(pa.array, columns.values())], names)
    with pa.OSFile(str(run.file(what)), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_batch(table)


def _left(run: _Run, number: int, what: str) -> pa.RecordBatch:
    path = _Run(run.source, run.slices, run.by, number, 0, 0, run.folder).file(what)
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_file(source).get_batch(0)


def _measured(runs: list[_Run], found: list[_Found]) -> Measured:
    """Put together what the runs of a source have told."""
    lateness, own = _added(one.lateness for one in found), _added(one.own for one in found)
    tuples = sum(one.tuples for one in found)
    first = min((one.first for one in found if one.tuples), default=0)
    last = found[-1].last if tuples else 0
    known, groups = _groups(runs) if runs[0].by else (0, ())
    return Measured(
        SourceProfile(
            source=runs[0].source,
            tuples=tuples,
            unit=runs[0].slices.schema.unit,
            first=first,
            last=last,
            rate=tuples / max(last - first, 1),
            lateness=Lateness.of(lateness),
            by=runs[0].by,
            own_lateness=Lateness.of(own) if runs[0].by else None,
            groups_known=known,
            groups=groups,
        ),
        lateness,
        own,
    )


def _added(parts: Iterable[Histogram]) -> Histogram:
    total = Histogram()
    for part in parts:
        total.counts += part.counts
        total.total += part.total
        total.most = max(total.most, part.most)
    return total


def _bins(seen: Histogram) -> dict[str, Any]:
    used = np.flatnonzero(seen.counts)
    return {"bins": used.tolist(), "counts": seen.counts[used].tolist(), "most": seen.most}


def _histogram(told: Mapping[str, Any]) -> Histogram:
    found = Histogram()
    found.counts[told["bins"]] = told["counts"]
    found.total, found.most = sum(told["counts"]), told["most"]
    return found


def _groups(runs: list[_Run]) -> tuple[int, tuple[GroupProfile, ...]]:
    """Return how many groups there are, and the largest."""
    index, sums = runs[0].index(), np.zeros((4, 0))
    for run in runs:
        told = _left(run, run.number, "groups")
        slots = index.encode(told.columns[: len(run.by)])
        sums = np.pad(sums, ((0, 0), (0, len(index) - sums.shape[1])))
        for row, what in enumerate(_SUMS):
            more = told.column(what).to_numpy()
            sums[row, slots] = (
                np.maximum(sums[row, slots], more) if what == "most" else sums[row, slots] + more
            )
    largest = np.argsort(-sums[0], kind="stable")[:_MOST_GROUPS]
    keys = pa.RecordBatch.from_arrays(index.keys(largest), names=list(runs[0].by)).to_pylist()
    rows = sums[:, largest].T.tolist()
    return len(index), tuple(
        GroupProfile(key, int(tuples), int(late), int(most), behind / tuples)
        for key, (tuples, late, most, behind) in zip(keys, rows, strict=True)
    )
