"""Describe: lets through only punctuation that an operator behind it can use.

A join that makes group-wise punctuation of 100 000 keys before an aggregate without groups,
or one each millisecond before a window that slides by the minute, is work for
nothing.  A punctuation that is dropped or rounded down is weaker, and so sound.

    Pass       every page, unchanged, at once.
    Keep       the last bound put out, and with group-wise punctuation one a group
               that is ahead of its stream.
    Propagate  linear      rounded down to the granularity
               group-wise  the same, if its attributes are among those wanted
               watermark   as punctuation of the same kind
               each only when it has grown; joint as it is.  Kinds that are not kept: never.
    Cost       O(1) a page, O(its groups) a punctuation.
    Source     thesis 8.1, third point, after Tucker's Describe operator.

There is no rolling up of group-wise punctuation to fewer attributes or to the whole stream:
that would need all the groups to be known, also those that have not come yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.policies.running_bound import floored, length_of

__all__ = ["Describe"]

_KINDS = ("linear", "groups", "joint", "watermarks")


class Describe(Operator):
    """Keeps the wanted kinds of punctuation, at a granularity.

    ``keep``: some of ``linear``, ``groups``, ``joint``, ``watermarks``; the end of the stream always passes.
    ``attributes``: group-wise punctuation is kept if all of its attributes are among them
    (those that operators behind group or join by); None: any.  ``granularity``: bounds are
    rounded down to its multiples.  Raises ``GraphError`` for an unknown kind or column, and
    if the granularity is not positive.

    >>> import pyarrow as pa
    >>> from oop_engine.testing import Driver
    >>> driver = Driver(Describe(granularity=60), Schema({"ts": pa.int64()}, "ts", "s"))
    >>> [driver.feed(0, Linear(below)) for below in (59, 61, 70, 125)]
    [[(0, Linear(below=0))], [(0, Linear(below=60))], [], [(0, Linear(below=120))]]
    """

    revisions = "passes"

    def __init__(
        self,
        granularity: Length | None = None,
        keep: Iterable[str] = _KINDS,
        attributes: Iterable[str] | None = None,
    ) -> None:
        self._keep = tuple(keep)
        self._granularity = granularity
        self._attributes = None if attributes is None else tuple(attributes)
        if not set(self._keep) <= set(_KINDS):
            msg = f"Describe: keep must name some of {', '.join(_KINDS)}; got {self._keep}"
            raise GraphError(msg)

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        inputs[0].require(self._attributes or (), "Describe: attributes")
        self._granule(inputs[0])
        return inputs

    def _granule(self, schema: Schema) -> int | None:
        if self._granularity is None:
            return None
        return length_of(self._granularity, schema, "Describe: granularity", least=1)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._every = self._granule(self.schemas_in[0])
        self._progress = Progress(1)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if self._wanted(punctuation):
            for grown in self._progress.advance(0, self._rounded(punctuation)):
                yield 0, grown

    def _wanted(self, punctuation: Punctuation) -> bool:
        match punctuation:
            case Linear(below):
                return below == FOREVER or "linear" in self._keep
            case GroupWise():
                known = self._attributes is None or set(punctuation.attributes) <= set(self._attributes)
                return known and "groups" in self._keep
            case Joint():
                return "joint" in self._keep
            case Watermark(of):
                return "watermarks" in self._keep and self._wanted(of)

    def _rounded(self, punctuation: Punctuation) -> Punctuation:
        match punctuation:
            case Linear(below):
                return Linear(int(floored(np.array([below]), self._every)[0]))
            case GroupWise(groups, below):
                return GroupWise(groups, floored(below, self._every))
            case Watermark(of):
                return punctuation.with_bounds(floored(np.atleast_1d(of.below), self._every))
            case Joint():
                return punctuation

    def state(self) -> State:
        return State(groups=self._progress.groups, nbytes=self._progress.nbytes)

    def save(self) -> dict[str, Any]:
        return {"progress": self._progress.save()}

    def load(self, state: Saved) -> None:
        self._progress.load(state.part("progress"))

    def describe(self) -> str:
        wanted = "" if self._attributes is None else f" by {', '.join(self._attributes)}"
        every = "" if self._granularity is None else f" at {self._granularity}"
        return f"Describe({', '.join(self._keep)}{every}{wanted})"
