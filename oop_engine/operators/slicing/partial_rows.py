"""Partial rows: partial aggregates on their way from ``PartialAggregate`` to ``Consolidate``.

    by columns | where it is: pane_start, or run_first and run_last | a column for each column of state of each part

Windows on grids travel as panes, which all of them share; windows that merge as runs, and of several sessions one row
serves all gaps.  Where there are both, runs end where panes do, so a row lies in one pane.  States travel as they are
kept (``oop_engine.operators.slicing.accumulators``), so merging them loses nothing.

A *pane* is the longest stretch of the progressing attribute whose tuples are all in the same windows: ``gcd(range,
slide)`` long where the slide divides the range, and never more than two a slide.  Tuples between windows are in no
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

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation, Arrays, Part
from oop_engine.operators.keys.row_codes import row_codes
from oop_engine.operators.slicing.accumulators import SumOverflowError, accumulator
from oop_engine.operators.slicing.checks import by_name
from oop_engine.operators.slicing.output import Output, Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.stores.pane_store import PaneStore
from oop_engine.operators.slicing.stores.run_store import RunStore
from oop_engine.operators.slicing.runs.runs import Runs
from oop_engine.operators.slicing.tagger import bind
from oop_engine.operators.slicing.window_states import WindowOverflowError
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Definition, Merging, Over, Windows, is_gap, is_grid, merges, nested

__all__ = ["PaneRows", "PartialRows", "partial_rows"]

_MANY = 64  # definitions, each with a store of its own behind the first half: more are sooner in one operator
_FEW = 3  # definitions that are named in an error


def partial_rows(
    windows: Windows | Mapping[str, Windows], aggregates: Mapping[str, Aggregation], by: tuple[str, ...],
    tuples: Schema, place: str, stamp: Stamp = "end",
) -> PartialRows:  # fmt: skip
    """Return the rows for ``windows``; raise ``GraphError`` in the name of ``place`` if they cannot be halved."""
    named = isinstance(windows, Mapping)
    given = by_name(windows, place) if isinstance(windows, Mapping) else {"": windows}
    definitions = {name: bind(one, tuples, by, place) for name, one in given.items()}
    for name, one in definitions.items():
        if one.over is not Over.ATTRIBUTE:
            msg = (
                f"{place}: windows must be on the progressing attribute, for the order of arrival is known in one "
                f"place only; got {describe_value(given[name])}: use WindowAggregate, or a Sliding or Tumbling window"
            )
            raise GraphError(msg)
    rest = aggregates, by, tuples, place, stamp
    grids = {name: one for name, one in definitions.items() if is_grid(one) and not one.landmark}
    gaps = {name: one for name, one in definitions.items() if is_gap(one)}
    if len(definitions) <= _MANY and len(grids) + len(gaps) == len(definitions):
        return RunRows(definitions, *rest, named=named) if gaps else PaneRows(grids, *rest, named=named)
    if not named and merges(definitions[""]):
        return RunRows(definitions, *rest)
    msg = (
        f"{place}: windows must be on grids, with a range, or sessions, at most {_MANY}, for others have no panes or "
        f"runs to let go of; got {len(given)}: {', '.join(map(describe_value, list(given.values())[:_FEW]))}: use "
        "WindowAggregate, or a Sliding, Tumbling or Session window"
    )
    raise GraphError(msg)


class PartialRows(ABC):
    """The form of rows of partial aggregates: ``schema``, and how they come into pages and out.

    ``definitions``: those of the windows, by name, in whole units; ``grids``: those on grids, by number.  ``tuples`` is
    the schema of the tuples themselves.  ``places``: names of the columns that say where a row is; the first is the
    progressing attribute.  Raises ``GraphError`` in the name of ``place`` if columns, types or names do not fit.
    """

    places: ClassVar[tuple[str, ...]]

    def __init__(
        self, definitions: Mapping[str, Definition], aggregates: Mapping[str, Aggregation], by: tuple[str, ...],
        tuples: Schema, place: str, stamp: Stamp = "end", *, named: bool = False,
    ) -> None:  # fmt: skip
        self.by = by
        self.output = Output(definitions, aggregates, tuples, by, stamp, place, named=named)
        self._states = [(of, _names(i, of.part, len(of.arrow_types())))
                        for i, of in enumerate(map(accumulator, self.parts))]  # fmt: skip
        numbered = enumerate(definitions.values())
        self.grids = {number: one for number, one in numbered if is_grid(one)}
        self.schema = self._schema(tuples, by, place)

    @property
    def parts(self) -> list[Part]:
        """The partial aggregates of a row, in the order of their columns."""
        return self.output.parts

    def _schema(self, tuples: Schema, by: tuple[str, ...], place: str) -> Schema:
        fields = [(name, tuples.type_of(name)) for name in by]
        fields += [(name, self.output.schema.type_of("window_start")) for name in self.places]
        for of, names in self._states:
            fields += zip(names, of.arrow_types(), strict=True)
        if taken := sorted({name for name, _ in fields[len(by) :]} & set(by)):
            msg = f"{place}: puts out columns of its own named {', '.join(taken)}; by has them too: rename those"
            raise GraphError(msg)
        return Schema(pa.schema(fields), self.places[0], tuples.unit)

    @abstractmethod
    def of_page(self, page: Page) -> Page | None:
        """Return the rows of a page of tuples, or None if none is in a window.  Raises ``ContractError``."""

    @abstractmethod
    def bound(self, bounds: Integers | int) -> Integers:
        """Return the bounds on rows that follow from those on tuples."""

    def stores(self, *, every: bool) -> list[Store]:
        """Return stores that take pages of rows, empty; ``every``: windows without a row are results too."""
        rest = self.parts, self.output.stamp
        return [PaneStore(n, grid, *rest, every=every, given=self.states) for n, grid in self.grids.items()]

    def pane_starts(self, times: Integers) -> Integers:
        """Return the start of the pane that each time is in: the last edge of all grids.  O(times x grids)."""
        starts: Integers = np.maximum.reduce([grid.pane_starts(times) for grid in self.grids.values()])
        return starts

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
    """A row is a pane of grids; of a page there is one a group and pane."""

    places = ("pane_start",)

    def inside(self, page: Page) -> Page | None:
        """Return the tuples that are in a window, or None if none is.  O(tuples x grids)."""
        inside = np.zeros(len(page), np.bool_)
        for grid in self.grids.values():
            first, last = grid.wids(page.times)
            inside |= last >= first
        if not inside.all():
            page = page.filter(inside)
        return page if len(page) else None

    def of_page(self, page: Page) -> Page | None:
        """O(tuples x grids), in Arrow and kernels."""
        if (inside := self.inside(page)) is None:
            return None
        panes, keys = self.pane_starts(inside.times), [inside.column(name) for name in self.by]
        numbers, first = row_codes([*keys, pa.array(panes)])
        keys, panes = [key.take(pa.array(first)) for key in keys], panes[first]
        states = States(self.parts, panes.size)
        inputs = states.prepare(inside, inside.times)
        try:
            states.add(numbers, inputs)
        except SumOverflowError as error:
            raise self.overflow_in(
                int(panes[error.at]), error, [key.slice(error.at, 1) for key in keys]
            ) from None
        return self.page(keys, [panes], states.columns)

    def overflow_in(self, pane: int, error: SumOverflowError, keys: Sequence[pa.Array]) -> ContractError:
        """Return the error that a sum does not fit in the pane that starts there, of the group with these ``keys``."""
        at = np.array([pane])
        grid = next(grid for grid in self.grids.values() if np.less_equal(*grid.wids(at))[0])
        (start,), (end,) = grid.extent(grid.wids(at)[0])
        return self.overflow(WindowOverflowError(error.column, 0, start, end), keys)

    def bound(self, bounds: Integers | int) -> Integers:
        """Round bounds on tuples down to the start of a pane, which closes the same windows; sentinels stay."""
        given = np.asarray(bounds, np.int64)
        margin = max((one.range or 0) + 2 * one.slide + abs(one.origin) for one in self.grids.values())
        inside = np.clip(given, NEVER + 1 + margin, FOREVER - 1 - margin)
        return np.where((given == NEVER) | (given == FOREVER), given, self.pane_starts(inside))


class RunRows(PartialRows):
    """Rows of runs of ``definitions``, by name: nested ones that merge, and grids; of a page one a run and pane."""

    places = ("run_first", "run_last")

    def __init__(self, definitions: Mapping[str, Definition], *given: Any, **named: Any) -> None:
        super().__init__(definitions, *given, **named)
        merging = {n: one for n, one in enumerate(definitions.values()) if merges(one)}
        self.nested: dict[int, Merging] = {**nested(merging)} or merging

    def of_page(self, page: Page) -> Page:
        """O(tuples log tuples)."""
        keys = [page.column(name) for name in self.by]
        apart = [*keys, pa.array(self.pane_starts(page.times))] if self.grids else keys
        slots, first = row_codes(apart) if apart else (np.zeros(len(page), np.int64), np.zeros(1, np.int64))
        try:
            runs = RunStore(self.nested, self.parts, self.output.stamp).runs_of(page, page.times, slots)
        except WindowOverflowError as error:
            raise self.overflow(error, [key.take(pa.array(first)) for key in keys]) from None
        keys = [key.take(pa.array(first[runs.slots])) for key in keys]
        return self.page(keys, [runs.first, runs.last], runs.states)

    def bound(self, bounds: Integers | int) -> Integers:
        """Return bounds as they are: a run begins with a tuple."""
        return np.asarray(bounds, np.int64)

    def stores(self, *, every: bool) -> list[Store]:
        return [_Merged(self), *super().stores(every=every)]


class _Merged(RunStore):
    """Takes rows of runs in place of tuples."""

    def __init__(self, rows: RunRows) -> None:
        super().__init__(rows.nested, rows.parts, rows.output.stamp)
        self._rows = rows

    def runs_of(self, page: Page, times: Integers, slots: Integers) -> Runs:
        last = page.column("run_last").cast(pa.int64()).to_numpy()
        self.check(int(last.min()), int(last.max()))
        return self._runs.new(slots, times, last, self._rows.states(page))


def _names(number: int, part: Part, columns: int) -> list[str]:
    name = f"state{number}_{part.kind}"
    return [name] if columns == 1 else [f"{name}_{i}" for i in range(columns)]
