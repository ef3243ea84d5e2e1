"""Partial rows: partial aggregates on their way from ``PartialAggregate`` to ``Consolidate``.

    by columns | where it is: pane_start, or run_first and run_last | a column for each column of state of each part

Windows on a grid have panes (``slicing/stores/pane_rows.py``), windows that merge have runs (``run_rows.py``).  States
travel as they are kept (``oop_engine.operators.slicing.accumulators``), so merging them loses nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation, Arrays, Part
from oop_engine.operators.slicing.accumulators import accumulator
from oop_engine.operators.slicing.output import Output, Stamp
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.window_states import WindowOverflowError
from oop_engine.operators.windows import Definition

__all__ = ["PartialRows"]

Integers = NDArray[np.int64]


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


def _names(number: int, part: Part, columns: int) -> list[str]:
    name = f"state{number}_{part.kind}"
    return [name] if columns == 1 else [f"{name}_{i}" for i in range(columns)]
