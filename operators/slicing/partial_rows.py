"""Partial rows: partial aggregates on their way from ``PartialAggregate`` to ``Consolidate``.

    by columns | where it is: pane_start, or run_first and run_last | a column for each column of state of each part

Windows on a grid travel as panes, windows that merge as runs; of several sessions one row serves all gaps.  States
travel as they are kept (``oop_engine.operators.slicing.accumulators``), so merging them loses nothing.

A *pane* is the longest stretch of the progressing attribute whose tuples are all in the same windows: ``gcd(range,
slide)`` long where the slide divides the range, and never more than two a slide.  What falls between windows is in no
pane.  A *run* is the tuples of a page that belong together.  Merging is associative and commutative, so the second half
gets the windows from rows of any number of first halves, in any order.

Source: panes after Li, Maier, Tufte, Papadimos, Tucker, SIGMOD Record 2005; two a slide after Krishnamurthy, Wu,
Franklin, SIGMOD 2006 (paired windows); compute and consolidate: Madsen, Zhou, Su, Enorm, DEBS 2016, section 4;
sessions: Traub et al., Scotty, TODS 2021.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation, Arrays, Part
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.accumulator import SumOverflowError
from oop_engine.operators.slicing.accumulators import accumulator
from oop_engine.operators.slicing.output import Output, Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.stores.pane_store import PaneStore
from oop_engine.operators.slicing.stores.run_store import RunStore
from oop_engine.operators.slicing.stores.runs import Runs
from oop_engine.operators.slicing.tagger import bind
from oop_engine.operators.slicing.window_states import WindowOverflowError
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Definition, Extents, Gap, Merging, Over, Windows, nested

__all__ = ["PaneRows", "PartialRows", "partial_rows"]

Integers = NDArray[np.int64]


def partial_rows(
    windows: Windows | Mapping[str, Windows], aggregates: Mapping[str, Aggregation], by: tuple[str, ...],
    tuples: Schema, what: str, stamp: Stamp = "end",
) -> PartialRows:  # fmt: skip
    """Return the rows for ``windows``; raise ``GraphError`` in the name of ``what`` if they cannot be halved."""
    named = isinstance(windows, Mapping)
    given = windows if isinstance(windows, Mapping) else {"": windows}
    definitions = {name: bind(one, tuples, by, what) for name, one in given.items()}
    for name, one in definitions.items():
        if one.over is not Over.ATTRIBUTE:
            msg = (
                f"{what}: windows must be on the progressing attribute, for the order of arrival is known in one "
                f"place only; got {describe_value(given[name])}: use WindowAggregate, or a Sliding or Tumbling window"
            )
            raise GraphError(msg)
    rest = aggregates, by, tuples, what, stamp
    first = next(iter(definitions.values()))
    if not named and isinstance(first, Extents) and not first.landmark:
        return PaneRows(first, *rest)
    merging = {name: one for name, one in definitions.items() if isinstance(one, Merging)}
    if len(merging) == len(definitions) and (
        not named or all(isinstance(one, Gap) for one in merging.values())
    ):
        return RunRows(merging, *rest, named=named)
    msg = (
        f"{what}: windows must be one on a grid, with a range, or sessions, for others have no panes or runs to let "
        f"go of; got {', '.join(map(describe_value, given.values()))}: use WindowAggregate, or a Sliding "
        "or Tumbling window"
    )
    raise GraphError(msg)


class PartialRows(ABC):
    """What rows of partial aggregates look like: ``schema``, and how they come into pages and out.

    ``definitions``: those of the windows, by name, in whole units.  ``tuples`` is the schema of the tuples themselves.
    ``places``: names of the columns that say where a row is; the first is the progressing attribute.  Raises
    ``GraphError`` in the name of ``what`` if columns, types or names do not fit.
    """

    places: ClassVar[tuple[str, ...]]

    def __init__(
        self, definitions: Mapping[str, Definition], aggregates: Mapping[str, Aggregation], by: tuple[str, ...],
        tuples: Schema, what: str, stamp: Stamp = "end", *, named: bool = False,
    ) -> None:  # fmt: skip
        self.by = by
        self.output = Output(definitions, aggregates, tuples, by, stamp, what, named=named)
        self._states = [(of, _names(i, of.part, len(of.arrow_types())))
                        for i, of in enumerate(map(accumulator, self.parts))]  # fmt: skip
        self.schema = self._schema(tuples, by, what)

    @property
    def parts(self) -> list[Part]:
        """The partial aggregates of a row, in the order of their columns."""
        return self.output.parts

    def _schema(self, tuples: Schema, by: tuple[str, ...], what: str) -> Schema:
        fields = [(name, tuples.type_of(name)) for name in by]
        fields += [(name, self.output.schema.type_of("window_start")) for name in self.places]
        for of, names in self._states:
            fields += zip(names, of.arrow_types(), strict=True)
        if taken := sorted({name for name, _ in fields[len(by) :]} & set(by)):
            msg = (
                f"{what}: puts out columns of its own named {', '.join(taken)}; by has them too: rename those"
            )
            raise GraphError(msg)
        return Schema(pa.schema(fields), self.places[0], tuples.unit)

    @abstractmethod
    def of_page(self, page: Page) -> Page | None:
        """Return the rows of a page of tuples, or None if none is in a window.  Raises ``ContractError``."""

    @abstractmethod
    def bound(self, bounds: Integers | int) -> Integers:
        """Return what bounds on tuples say of the rows."""

    @abstractmethod
    def store(self, *, every: bool) -> Store:
        """Return a store that takes pages of rows; ``every``: windows without one are results too."""

    def page(self, keys: Sequence[pa.Array], places: Sequence[Integers], states: Sequence[Arrays]) -> Page:
        """Return the page of rows with these keys, places and states."""
        fields = self.schema.fields
        kind = fields.field(self.places[0]).type
        columns = [*keys, *(pa.array(place).cast(kind) for place in places)]
        for (of, _), state in zip(self._states, states, strict=True):
            columns += of.to_arrow(state)
        return Page(self.schema, pa.RecordBatch.from_arrays(columns, schema=fields))

    def states(self, page: Page) -> list[Arrays]:
        """Return the states in the rows of ``page``."""
        return [of.of_arrow([page.column(name) for name in names]) for of, names in self._states]

    def overflow(self, error: WindowOverflowError, keys: Sequence[pa.Array]) -> ContractError:
        """Return the error that a sum does not fit, in a group by its row of ``keys``."""
        group = {name: key.slice(error.slot, 1) for name, key in zip(self.by, keys, strict=True)}
        return self.output.overflow(error.column, error.start, error.end, group)


class PaneRows(PartialRows):
    """Rows of panes of ``extents``; of a page one a group and pane."""

    places = ("pane_start",)

    def __init__(self, extents: Extents, *given: Any) -> None:
        super().__init__({"": extents}, *given)
        self.extents = extents

    def of_page(self, page: Page) -> Page | None:
        """O(1) a tuple, in Arrow and kernels."""
        inside = self.inside(page)
        return None if inside is None else self._partial(inside)

    def inside(self, page: Page) -> Page | None:
        """Return the tuples that are in a window, or None if none is."""
        first, last = self.extents.wids(page.times)
        inside = last >= first
        if not inside.all():
            page = page.filter(inside)
        return page if len(page) else None

    def _partial(self, page: Page) -> Page:
        panes = self.extents.pane_starts(page.times)
        keys = [page.column(name) for name in self.by]
        numbers, first = row_codes([*keys, pa.array(panes)])
        at = pa.array(first)
        keys, panes = [key.take(at) for key in keys], panes[first]
        states = States(self.parts, panes.size)
        inputs = states.prepare(page, page.times)
        try:
            states.add(numbers, inputs)
        except SumOverflowError as error:
            (start,), (end,) = self.extents.extent(self.extents.wids(panes[[error.at]])[0])
            raise self.overflow(WindowOverflowError(error.column, error.at, start, end), keys) from None
        return self.page(keys, [panes], states.columns)

    def bound(self, bounds: Integers | int) -> Integers:
        """Round bounds on tuples down to the start of a pane.

        That closes the same windows.  ``NEVER`` and ``FOREVER`` stay what they are.
        """
        given = np.asarray(bounds, np.int64)
        margin = (self.extents.range or 0) + 2 * self.extents.slide + abs(self.extents.origin)
        inside = np.clip(given, NEVER + 1 + margin, FOREVER - 1 - margin)
        return np.where((given == NEVER) | (given == FOREVER), given, self.extents.pane_starts(inside))

    def store(self, *, every: bool) -> PaneStore:
        """Return a store that takes pages of rows, empty."""
        return PaneStore(0, self.extents, self.parts, self.output.stamp, every=every, given=self.states)


class RunRows(PartialRows):
    """Rows of runs of nested ``definitions``, by name; of a page one a run."""

    places = ("run_first", "run_last")

    def __init__(self, definitions: Mapping[str, Merging], *given: Any, **named: Any) -> None:
        super().__init__(definitions, *given, **named)
        numbered = dict(enumerate(definitions.values()))
        self.nested: dict[int, Merging] = {**nested(numbered)} or numbered

    def of_page(self, page: Page) -> Page:
        """O(tuples log tuples)."""
        keys = [page.column(name) for name in self.by]
        slots, first = row_codes(keys) if keys else (np.zeros(len(page), np.int64), np.zeros(1, np.int64))
        try:
            runs = RunStore(self.nested, self.parts, self.output.stamp).runs_of(page, page.times, slots)
        except WindowOverflowError as error:
            raise self.overflow(error, [key.take(pa.array(first)) for key in keys]) from None
        keys = [key.take(pa.array(first[runs.slots])) for key in keys]
        return self.page(keys, [runs.first, runs.last], runs.states)

    def bound(self, bounds: Integers | int) -> Integers:
        """Return bounds as they are: a run begins with a tuple."""
        return np.asarray(bounds, np.int64)

    def store(self, *, every: bool) -> RunStore:
        """Return a store that takes pages of rows, empty."""
        return _Merged(self)


class _Merged(RunStore):
    """Takes rows of runs in place of tuples."""

    def __init__(self, rows: RunRows) -> None:
        super().__init__(rows.nested, rows.parts, rows.output.stamp)
        self._rows = rows

    def runs_of(self, page: Page, times: Integers, slots: Integers) -> Runs:
        last = page.column("run_last").cast(pa.int64()).to_numpy()
        return self._runs.new(slots, times, last, self._rows.states(page))


def _names(number: int, part: Part, columns: int) -> list[str]:
    name = f"state{number}_{part.kind}"
    return [name] if columns == 1 else [f"{name}_{i}" for i in range(columns)]
