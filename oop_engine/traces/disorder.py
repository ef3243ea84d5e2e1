"""Disorder: a generator of traces that are out of order in known ways, seeded, of any length.

Tuples are made in the order of event time, one chunk after the other, each with its moment of
arrival; a tuple that arrives after its chunk's end is held back until its turn.  So memory is bounded by
the tuples under way at one time, not by the trace, and nothing depends on how the pages are cut.

Source: thesis 6.1.5.1 (band and block-sorted disorder), fig. 8-11 (links with skew).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Linear
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS, Length, to_units

__all__ = ["Disorder", "Link"]

_CHUNK = 1 << 17
_TS, _LINK, _KEY, _LEN, _ARRIVAL, _TIE = range(6)

Tuples = NDArray[np.int64]
"""int64 (6, tuples): event time, link, key, length, arrival, and a random number to break ties of arrival."""


@dataclass(frozen=True)
class Link:
    """A source of ``rate`` tuples per second (per 1000 units, where the unit is no time).

    ``skew``: how much later everything of it arrives.  ``lulls``: periods of event time
    ``(start, stop)``, from the trace's beginning, in which it is silent.
    """

    name: str
    rate: float
    skew: Length = 0
    lulls: tuple[tuple[Length, Length], ...] = ()


@dataclass(frozen=True)
class Disorder:
    """A trace to be made: columns ``ts`` (int64), ``link`` (string), ``key``, ``len`` (int32, bytes).

    Event times are uniform at each link's rate, in ``origin <= ts < origin + duration``; arrival is

        block end (with ``block``) or ts,  + the link's skew,  + 0 ... ``band``,
        and for a share ``late`` of the tuples  + ``late_by`` ... 2 ``late_by``

    each drawn uniformly; tuples that arrive in the same moment come in random order.  A block
    is a stretch of event time that is flushed as a whole at its end (thesis 6.1.5.1).
    ``keys`` of them are drawn with probability 1 / rank ** ``zipf`` (0: all alike), as int64
    ``0`` (the most frequent) ... or, with ``ipv4``, as addresses ``10.x.y.z``.
    ``punctuate``: the trace carries linear punctuation, as soon as it is true,
    at multiples of this length (and so, if it is the block's, after each block).

    The same seed gives the same tuples, whatever the size of pages.
    Raises ``GraphError`` if a parameter is out of range.

    >>> trace = Disorder((Link("a", 1000), Link("b", 10, skew="2 s")), duration="10 s", band="1 s")
    >>> pages = list(trace.messages())
    >>> sum(len(page) for page in pages)
    10100
    """

    links: tuple[Link, ...]
    duration: Length
    unit: str = "ms"
    origin: int = 0
    band: Length = 0
    block: Length = 0
    late: float = 0.0
    late_by: Length = 0
    keys: int = 1000
    zipf: float = 1.0
    ipv4: bool = False
    punctuate: Length = 0
    seed: int = 0

    def __post_init__(self) -> None:
        lengths = [self._units(name) for name in ("duration", "band", "block", "late_by", "punctuate")]
        lengths += [to_units(link.skew, self.unit, "Disorder: skew") for link in self.links]
        names = [link.name for link in self.links]
        wrong = {
            f"links must have different names; got {names}": len(set(names)) < len(names) or not names,
            f"lengths must be at least 0; got {min(lengths)} {self.unit}": min(lengths) < 0,
            f"late must be a share from 0 to 1; got {self.late}": not 0 <= self.late <= 1,
            f"keys must be 1 to 2**24; got {self.keys}": not 0 < self.keys <= 1 << 24,
            f"zipf must be at least 0; got {self.zipf}": not self.zipf >= 0,
            f"rates must be at least 0 and finite; got {[link.rate for link in self.links]}": not all(
                0 <= link.rate < math.inf for link in self.links
            ),
        }
        for message, is_wrong in wrong.items():
            if is_wrong:
                msg = f"Disorder: {message}"
                raise GraphError(msg)

    @property
    def schema(self) -> Schema:
        """The columns of the trace."""
        key = pa.string() if self.ipv4 else pa.int64()
        columns = {"ts": pa.int64(), "link": pa.string(), "key": key, "len": pa.int32()}
        return Schema(columns, "ts", self.unit)

    def messages(self, page_rows: int = 65_536) -> Iterator[Message]:
        """Yield pages of at most ``page_rows`` with arrival, in its order, and punctuation between them."""
        step = self._units("punctuate")
        labels = self._labels()
        bound = self.origin // step * step if step else 0  # nothing is ever before the origin
        for run in self._runs():
            cuts, bounds = _punctuation(run, step, bound) if step else (np.empty(0, np.int64),) * 2
            start = 0
            for cut, bound in zip(cuts.tolist(), bounds.tolist(), strict=True):
                yield from self._pages(run.tuples[:, start:cut], labels, page_rows)
                yield Linear(bound)
                start = cut
            yield from self._pages(run.tuples[:, start:], labels, page_rows)

    def _pages(
        self, tuples: Tuples, labels: tuple[pa.Array, pa.Array | None], page_rows: int
    ) -> Iterator[Page]:
        links, addresses = labels
        for start in range(0, tuples.shape[1], page_rows):
            part = tuples[:, start : start + page_rows]
            key = pa.array(part[_KEY])
            columns = [
                pa.array(part[_TS]),
                links.take(pa.array(part[_LINK])),
                key if addresses is None else addresses.take(key),
                pa.array(part[_LEN].astype(np.int32)),
            ]
            schema = self.schema
            yield Page(schema, pa.RecordBatch.from_arrays(columns, schema=schema.fields), part[_ARRIVAL])

    def _labels(self) -> tuple[pa.Array, pa.Array | None]:
        links = pa.array([link.name for link in self.links], pa.string())
        if not self.ipv4:
            return links, None
        texts = [f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}" for i in range(self.keys)]
        return links, pa.array(texts, pa.string())

    def _runs(self) -> Iterator[_Run]:
        """Yield the tuples by arrival, each run with the least event time of all that come later."""
        chunks = self._chunks()
        chunk = next(chunks, None)
        pending: list[Tuples] = []
        skew = min(to_units(link.skew, self.unit) for link in self.links)
        while chunk is not None:
            pending.append(chunk)
            chunk = next(chunks, None)
            if chunk is None:
                yield _Run(_by_arrival(pending), None)
                return
            first = int(chunk[_TS].min())
            ready, pending = _split(pending, before=first + skew)
            if ready:
                yield _Run(_by_arrival(ready), min([first, *(int(part[_TS].min()) for part in pending)]))

    def _chunks(self) -> Iterator[Tuples]:
        """Yield the tuples by event time, in chunks that are not empty."""
        duration = self._units("duration")
        per_second = TIME_UNITS.get(self.unit, 1000)
        rate = sum(link.rate for link in self.links) / per_second
        step = duration if rate * duration <= _CHUNK else max(int(_CHUNK / rate), 1)
        shares = 1 / np.arange(1, self.keys + 1) ** self.zipf
        ranks = np.cumsum(shares / shares.sum())
        for start in range(0, duration, max(step, 1)):
            stop = min(start + step, duration)
            made = [self._made(i, start, stop, per_second, ranks) for i in range(len(self.links))]
            chunk = np.concatenate(made, axis=1)
            if chunk.shape[1]:
                yield chunk

    def _made(self, i: int, start: int, stop: int, per_second: int, ranks: NDArray[np.float64]) -> Tuples:
        """Return the tuples that link ``i`` sends from ``start`` to ``stop``, with random arrivals."""
        link = self.links[i]
        draw = np.random.default_rng([self.seed, i, start])
        size = math.floor(link.rate * stop / per_second) - math.floor(link.rate * start / per_second)
        made = np.empty((6, size), np.int64)
        ts = np.sort(draw.integers(start, stop, size))
        made[_TS] = ts + self.origin
        made[_LINK] = i
        made[_KEY] = np.minimum(np.searchsorted(ranks, draw.random(size), side="right"), self.keys - 1)
        made[_LEN] = draw.integers(40, 1501, size)
        made[_ARRIVAL] = self._arrivals(ts, link, draw) + self.origin
        made[_TIE] = draw.integers(0, 1 << 62, size)
        for lull in link.lulls:
            begin, end = (to_units(length, self.unit, f"Disorder: lull of {link.name!r}") for length in lull)
            made, ts = made[:, stays := (ts < begin) | (ts >= end)], ts[stays]
        return made

    def _arrivals(self, ts: NDArray[np.int64], link: Link, draw: np.random.Generator) -> NDArray[np.int64]:
        block, band, late_by = (self._units(name) for name in ("block", "band", "late_by"))
        sent = (ts // block + 1) * block if block else ts
        delay = to_units(link.skew, self.unit) + draw.integers(0, band, len(ts), endpoint=True)
        more = draw.integers(late_by, 2 * late_by, len(ts), endpoint=True)
        return sent + delay + np.where(draw.random(len(ts)) < self.late, more, 0)

    def _units(self, name: str) -> int:
        return to_units(getattr(self, name), self.unit, f"Disorder: {name}")


class _Run(NamedTuple):
    """Tuples in order of arrival, and the least event time of all later ones (None: there are none)."""

    tuples: Tuples
    rest: int | None


def _split(parts: list[Tuples], before: int) -> tuple[list[Tuples], list[Tuples]]:
    """Return the tuples that arrived before a moment, and the rest; parts that wait as a whole are not copied."""
    ready, pending = [], []
    for part in parts:
        arrived = part[_ARRIVAL] < before
        if arrived.any():
            ready.append(part[:, arrived])
            part = part[:, ~arrived]
        if part.shape[1]:
            pending.append(part)
    return ready, pending


def _by_arrival(parts: list[Tuples]) -> Tuples:
    tuples = np.concatenate(parts, axis=1)
    return tuples[:, np.lexsort((tuples[_TIE], tuples[_ARRIVAL]))]


def _punctuation(run: _Run, step: int, bound: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return after how many tuples of a run the bound grows, and its new values: multiples of ``step``."""
    ts = run.tuples[_TS]
    last = int(ts[-1]) if run.rest is None else run.rest  # after the very last one comes the end
    lowest_after = np.minimum.accumulate(np.append(ts[1:], last)[::-1])[::-1]
    bounds = lowest_after // step * step
    before = np.concatenate([[bound], bounds[:-1]])
    grown = np.flatnonzero(bounds > before)
    return grown + 1, bounds[grown]
