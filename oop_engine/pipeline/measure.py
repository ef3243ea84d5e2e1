"""Measuring disorder at scale: lateness by source and by group, in two passes over segments, without collecting.

The segments of a source are divided into parts, a task each.

    1   the largest time of each part, of all and of each group
    2   how late every tuple of a part is, given the largest times of the parts before it

Lateness goes into histograms of fixed size that are added up (``traces.lateness``), so the figures
are those of the embedded ``profile``.  The sums of groups stay in files; a task and the driver
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

from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.punctuation import NEVER
from oop_engine.pipeline.segmented import Segmented
from oop_engine.spark.session.failures import failure_of
from oop_engine.traces.lateness import Histogram, OwnLateness
from oop_engine.traces.profiling import GroupProfile, Lateness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["InTasks", "Measured", "SourceProfile", "in_spark", "measure"]

Ints = NDArray[np.int64]
InTasks: TypeAlias = Callable[[Sequence[Any], Callable[[Any], Any]], list[Any]]
"""Maps a function over jobs, anywhere, and returns the results in the order of the jobs."""

_MOST_GROUPS = 20
_DDL = "at int, body binary"


@dataclass(frozen=True)
class SourceProfile:
    """The disorder of a source, as ``traces.profiling`` has it; values in the unit of the progressing attribute.

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
    def of(cls, plain: Mapping[str, Any]) -> Measured:
        """Return the profile of a dictionary that ``to_dict`` made."""
        profile = dict(plain["profile"])
        profile |= {key: profile[key] and Lateness(**profile[key]) for key in ("lateness", "own_lateness")}
        profile["by"] = tuple(profile["by"])
        profile["groups"] = tuple(GroupProfile(**group) for group in profile["groups"])
        return cls(SourceProfile(**profile), _histogram(plain["lateness"]), _histogram(plain["own"]))


@dataclass(frozen=True)
class _Part:
    """Some segments of a source, one after the other; ``number``: among the parts of the source."""

    source: str
    segments: Segmented
    by: tuple[str, ...]
    number: int
    start: int
    stop: int
    folder: str

    def file(self, what: str) -> Path:
        return Path(self.folder) / f"{self.source}-{self.number:04d}.{what}.arrow"

    def pages(self) -> Iterator[tuple[Ints, list[pa.Array]]]:
        """Yield the times and the key columns, page by page; nothing else is read."""
        schema = self.segments.schema.select(
            list(dict.fromkeys([self.segments.schema.progressing, *self.by]))
        )
        narrow = Segmented(self.segments.folder, schema, None, self.segments.clocks)
        for page in narrow.pages(self.start, self.stop):
            yield page.times, [page.column(name) for name in self.by]

    def index(self) -> GroupIndex:
        return GroupIndex([self.segments.schema.type_of(name) for name in self.by])


@dataclass
class _Found:
    """The figures of one part."""

    tuples: int
    first: int
    last: int
    lateness: Histogram
    own: Histogram


def measure(
    in_tasks: InTasks, sources: Mapping[str, Segmented], by: tuple[str, ...], folder: Path, tasks: int
) -> dict[str, Measured]:
    """Return the disorder of each source; ``folder`` is for files that tasks exchange.

    ``in_tasks``: runs the tasks (see ``in_spark``); ``tasks``: how many may run at once.  O(n log page)
    time, twice the reading of time and key columns.
    """
    each = max(1, -(-2 * tasks // max(len(sources), 1)))
    parts = [part for name in sources for part in _parts(name, sources[name], by, folder, each)]
    folder.mkdir(parents=True, exist_ok=True)
    largest: list[int] = in_tasks(parts, _largest)
    before = [_before(parts, largest, at) for at in range(len(parts))]
    measured: list[_Found] = in_tasks([*zip(parts, before, strict=True)], _lateness)
    return {
        name: _measured([part for part in parts if part.source == name], [
            figures for part, figures in zip(parts, measured, strict=True) if part.source == name
        ])
        for name in sources
    }  # fmt: skip


def _parts(name: str, segments: Segmented, by: tuple[str, ...], folder: Path, count: int) -> list[_Part]:
    cuts = np.linspace(0, segments.count(), min(count, segments.count()) + 1).astype(int).tolist()
    return [
        _Part(name, segments, by, number, start, stop, str(folder))
        for number, (start, stop) in enumerate(itertools.pairwise(cuts))
    ]


def in_spark(spark: SparkSession) -> InTasks:
    """Return a function that maps over jobs, a Spark task for each, and collects the results at the driver."""

    def do(jobs: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for at in batch.column(0).to_pylist():
                    body = pickle.dumps(work(jobs[at]))
                    yield pa.RecordBatch.from_pydict({"at": pa.array([at], pa.int32()), "body": [body]})

        with failure_of():
            rows = spark.range(0, len(jobs), 1, len(jobs)).mapInArrow(run, _DDL).toArrow().to_pylist()
        results = {row["at"]: pickle.loads(row["body"]) for row in rows}
        return [results[at] for at in range(len(jobs))]

    return do


def _largest(part: _Part) -> int:
    """First pass: return the largest time of a part, and write those of its groups to a file."""
    index, largest, tops = part.index(), NEVER, np.full(0, NEVER)
    for times, keys in part.pages():
        largest = max(largest, int(times.max()))
        if part.by:
            slots = index.encode(keys)
            tops = np.concatenate([tops, np.full(len(index) - len(tops), NEVER)])
            np.maximum.at(tops, slots, times)
    _leave(part, "largest", index, np.arange(len(tops)), {"largest": tops})
    return largest


def _before(parts: list[_Part], largest: list[int], at: int) -> int:
    earlier = [top for part, top in zip(parts[:at], largest, strict=False) if part.source == parts[at].source]
    return max(earlier, default=NEVER)


def _lateness(job: tuple[_Part, int]) -> _Found:
    """Second pass: return how late the tuples of a part are, after the parts before it."""
    part, before = job
    index, lateness, own = part.index(), Histogram(), Histogram()
    within = OwnLateness(index)
    for number in range(part.number if part.by else 0):
        earlier = _left(part, number, "largest")
        slots = index.encode(earlier.columns[:-1])
        within.add(earlier.column("largest").to_numpy(), slots)
    tuples, first, last = 0, -NEVER, before
    sums = np.zeros((4, len(index)))  # (tuples, out of order, most, behind; groups)
    for times, keys in part.pages():
        lags = np.maximum(np.maximum.accumulate(times), last) - times
        lateness.add(lags)
        tuples, first, last = tuples + len(times), min(first, int(times.min())), max(last, int(times.max()))
        if part.by:
            slots = index.encode(keys)
            late = within.add(times, slots)
            own.add(late)
            sums = _summed(sums, len(index), slots, late, lags)
    seen = np.flatnonzero(sums[0])
    _leave(part, "groups", index, seen, {what: sums[row, seen] for row, what in enumerate(_SUMS)})
    return _Found(tuples, first, last, lateness, own)


_SUMS = ("tuples", "out_of_order", "most", "behind")


def _summed(sums: NDArray[np.float64], size: int, slots: Ints, late: Ints, lags: Ints) -> NDArray[np.float64]:
    sums = np.pad(sums, ((0, 0), (0, size - sums.shape[1])))
    sums[0] += np.bincount(slots, minlength=size)
    sums[1] += np.bincount(slots, late > 0, size)
    np.maximum.at(sums[2], slots, late)
    sums[3] += np.bincount(slots, lags, size)
    return sums


def _leave(part: _Part, what: str, index: GroupIndex, slots: Ints, columns: Mapping[str, Any]) -> None:
    if not part.by:
        return
    names = [*(f"key {name}" for name in part.by), *columns]
    table = pa.RecordBatch.from_arrays([*index.keys(slots), *map(pa.array, columns.values())], names)
    with pa.OSFile(str(part.file(what)), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_batch(table)


def _left(part: _Part, number: int, what: str) -> pa.RecordBatch:
    path = _Part(part.source, part.segments, part.by, number, 0, 0, part.folder).file(what)
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_file(source).get_batch(0)


def _measured(parts: list[_Part], figures: list[_Found]) -> Measured:
    """Merge the figures of all parts of a source."""
    lateness, own = _added(part.lateness for part in figures), _added(part.own for part in figures)
    tuples = sum(part.tuples for part in figures)
    first = min((part.first for part in figures if part.tuples), default=0)
    last = figures[-1].last if tuples else 0
    known, groups = _groups(parts) if parts[0].by else (0, ())
    return Measured(
        SourceProfile(
            source=parts[0].source,
            tuples=tuples,
            unit=parts[0].segments.schema.unit,
            first=first,
            last=last,
            rate=tuples / max(last - first, 1),
            lateness=Lateness.of(lateness),
            by=parts[0].by,
            own_lateness=Lateness.of(own) if parts[0].by else None,
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


def _histogram(plain: Mapping[str, Any]) -> Histogram:
    histogram = Histogram()
    histogram.counts[plain["bins"]] = plain["counts"]
    histogram.total, histogram.most = sum(plain["counts"]), plain["most"]
    return histogram


def _groups(parts: list[_Part]) -> tuple[int, tuple[GroupProfile, ...]]:
    """Return how many groups there are, and the largest."""
    index, sums = parts[0].index(), np.zeros((4, 0))
    for part in parts:
        batch = _left(part, part.number, "groups")
        slots = index.encode(batch.columns[: len(part.by)])
        sums = np.pad(sums, ((0, 0), (0, len(index) - sums.shape[1])))
        for row, what in enumerate(_SUMS):
            more = batch.column(what).to_numpy()
            sums[row, slots] = (
                np.maximum(sums[row, slots], more) if what == "most" else sums[row, slots] + more
            )
    largest = np.argsort(-sums[0], kind="stable")[:_MOST_GROUPS]
    keys = rows_of(pa.RecordBatch.from_arrays(index.keys(largest), names=list(parts[0].by)))
    rows = sums[:, largest].T.tolist()
    return len(index), tuple(
        GroupProfile(key, int(tuples), int(late), int(most), lag / tuples)
        for key, (tuples, late, most, lag) in zip(keys, rows, strict=True)
    )
