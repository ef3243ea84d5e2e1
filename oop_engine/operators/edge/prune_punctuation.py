"""PrunePunctuation: lets through only punctuation that an operator behind it can use.

A join that makes group-wise punctuation of 100 000 keys before an aggregate without groups,
or one each millisecond before a window that slides by the minute, is work for
nothing.  A punctuation that is dropped or rounded down is weaker, and so sound.

    Pass       every page, unchanged, at once.
    Keep       with ``groups`` a bound a group; the last bound emitted, and with group-wise punctuation one a group
               that is ahead of its stream.
    Propagate  linear      rounded down to the granularity
               group-wise  the same, if its attributes are among those wanted
               watermark   as punctuation of the same kind
               each only when it has grown; joint as it is.  Kinds that are not kept: never.
    Cost       O(1) a page, O(its groups) a punctuation; with ``groups`` O(these).
    Source     thesis 8.1, third point, after Tucker's Describe operator.

Where all groups are known (``groups``), group-wise punctuation is rolled up: the least bound of them all is one of the
whole stream, and of those with the same values of ``attributes`` one of a coarser group.  A tuple of another
group would break it, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.groups.group_index import GroupIndex, occurring
from oop_engine.core.groups.in_python import rows_of
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.keys.group_match import GroupMatch
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.policies.running_bound import floored, length_of

__all__ = ["PrunePunctuation"]

_KINDS = ("linear", "groups", "joint", "watermarks")


@checked_arguments
class PrunePunctuation(Operator):
    """Keeps the wanted kinds of punctuation, at a granularity.

    ``keep``: some of ``linear``, ``groups``, ``joint``, ``watermarks``; the end of the stream always passes.
    ``attributes``: group-wise punctuation is kept if all of its attributes are among them
    (those that operators behind group or join by); None: any.  ``granularity``: bounds are
    rounded down to its multiples.  ``groups``: a record batch of all groups there are; the least bound of them
    goes out as a linear one too, for a look-up a tuple; and where ``attributes`` are some of their columns, the least
    bound of the groups that agree in these as group-wise punctuation on them.  Raises ``GraphError`` for an unknown
    kind or column, and if the granularity is not positive; ``ContractError`` for a tuple of a group that is not in
    ``groups``.

    >>> import pyarrow as pa
    >>> from oop_engine.testing import Driver
    >>> driver = Driver(PrunePunctuation(granularity=60), Schema({"ts": pa.int64()}, "ts", "s"))
    >>> [driver.feed(0, Linear(below)) for below in (59, 61, 70, 125)]
    [[(0, Linear(below=0))], [(0, Linear(below=60))], [], [(0, Linear(below=120))]]
    """

    revisions = "passes"

    def __init__(
        self,
        granularity: Length | None = None,
        keep: Iterable[str] = _KINDS,
        attributes: Iterable[str] | None = None,
        groups: pa.RecordBatch | None = None,
    ) -> None:
        self._groups = groups
        self._keep = tuple(keep)
        self._granularity = granularity
        self._attributes = None if attributes is None else tuple(attributes)
        if not set(self._keep) <= set(_KINDS):
            msg = f"PrunePunctuation: keep must name some of {', '.join(_KINDS)}; got {self._keep}"
            raise GraphError(msg)

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        inputs[0].require(self._attributes or (), "PrunePunctuation: attributes")
        if self._groups is not None:
            inputs[0].require(self._groups.schema.names, "PrunePunctuation: groups")
            if not self._groups.num_columns or not self._groups.num_rows:
                msg = "PrunePunctuation: groups must have a column and a row at least; got none: leave it out"
                raise GraphError(msg)
        self._granule(inputs[0])
        return inputs

    def _granule(self, schema: Schema) -> int | None:
        if self._granularity is None:
            return None
        return length_of(self._granularity, schema, "PrunePunctuation: granularity", least=1)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column,) * len(inputs)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        groups = () if self._groups is None else self._groups.schema.names
        return (downstream[0].union(self._attributes or (), groups),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._every = self._granule(self.schemas_in[0])
        self._progress = Progress(1, tables=IN_KERNELS)
        self._by = () if self._groups is None else tuple(self._groups.schema.names)
        types = [self.schemas_in[0].type_of(name) for name in self._by]
        self._known = GroupIndex(types, IN_KERNELS)
        if self._groups is not None:
            self._known.encode(
                [self._groups.column(n).cast(type_) for n, type_ in zip(self._by, types, strict=True)]
            )
        self._match = GroupMatch(self._known, self._by)
        self._bounds = np.full(len(self._known), NEVER)
        self._coarse = tuple(name for name in self._by if name in (self._attributes or ()))
        if len(self._coarse) == len(self._by):
            self._coarse = ()
        keys = dict(zip(self._by, self._known.keys(np.arange(len(self._known))), strict=True))
        self._wider = GroupIndex([self.schemas_in[0].type_of(name) for name in self._coarse], IN_KERNELS)
        of_wider = self._wider.encode([keys[name] for name in self._coarse], len(self._known))
        self._wider_of = of_wider.copy()  # of no columns it is a part of something large

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        if (
            self._by
            and (rows := self._known.find([page.column(name) for name in self._by])).min(initial=0) < 0
        ):
            row = rows_of(page.batch.slice(int(np.argmin(rows)), 1).select(self._by))[0]
            msg = f"PrunePunctuation: groups must be all there are; got a tuple of {row}: add it, or leave groups out"
            raise ContractError(msg)
        yield 0, page

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        for message in (punctuation, *self._rolled_up(punctuation)):
            if self._wanted(message):
                for grown in self._progress.advance(0, self._rounded(message)):
                    yield 0, grown

    def _rolled_up(self, punctuation: Punctuation) -> Iterator[Linear | GroupWise]:
        """Yield the bounds of coarser groups and of the whole stream that follow, where all groups are known."""
        if isinstance(punctuation, Linear):
            np.maximum(self._bounds, punctuation.below, out=self._bounds)
        elif isinstance(punctuation, GroupWise) and self._by and set(punctuation.attributes) <= set(self._by):
            slots, rows = self._match.of(punctuation)
            self._bounds[slots] = np.maximum(self._bounds[slots], punctuation.below[rows])
            if self._coarse and slots.size:
                yield self._of_wider(occurring(self._wider_of[slots], len(self._wider)))
            yield Linear(int(self._bounds.min()))

    def _of_wider(self, touched: NDArray[np.int64]) -> GroupWise:
        """Return the least bound of each of some coarser groups, where there is one."""
        lowest = np.full(len(self._wider), FOREVER)
        np.minimum.at(lowest, self._wider_of, self._bounds)
        touched = touched[lowest[touched] > NEVER]
        groups = pa.RecordBatch.from_arrays(self._wider.keys(touched), names=list(self._coarse))
        return GroupWise(groups, lowest[touched])

    def _wanted(self, punctuation: Punctuation) -> bool:
        match punctuation:
            case Linear(below):
                return below == FOREVER or "linear" in self._keep
            case GroupWise():
                known = self._attributes is None or set(punctuation.attributes) <= set(self._attributes)
                return known and "groups" in self._keep
            case Joint():
                return "joint" in self._keep
            case Watermark(bound):
                return "watermarks" in self._keep and self._wanted(bound)

    def _rounded(self, punctuation: Punctuation) -> Punctuation:
        match punctuation:
            case Linear(below):
                return Linear(int(floored(np.array([below]), self._every)[0]))
            case GroupWise(groups, below):
                return GroupWise(groups, floored(below, self._every))
            case Watermark(bound):
                return punctuation.with_bounds(floored(np.atleast_1d(bound.below), self._every))
            case Joint():
                return punctuation

    def state(self) -> State:
        nbytes = (
            self._progress.nbytes
            + self._known.nbytes
            + self._match.nbytes
            + self._wider.nbytes
            + self._wider_of.nbytes
            + self._bounds.nbytes
        )
        return State(groups=self._progress.groups, nbytes=nbytes)

    def save(self) -> dict[str, Any]:
        return {"progress": self._progress.save(), "bounds": self._bounds}

    def load(self, state: Saved) -> None:
        self._progress.load(state.part("progress"))
        self._bounds = state.integers("bounds", self._bounds.shape).copy()

    def describe(self) -> str:
        wanted = "" if self._attributes is None else f" by {', '.join(self._attributes)}"
        every = "" if self._granularity is None else f" at {self._granularity}"
        return f"PrunePunctuation({', '.join(self._keep)}{every}{wanted})"
