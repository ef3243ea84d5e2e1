"""Partial rows: partial aggregates on their way from ``PartialAggregate`` to ``Consolidate``.

    by columns | pane_start | a column for each column of state of each part

A *pane* is the longest stretch of the progressing attribute whose tuples are all in the
same windows: ``gcd(range, slide)`` long where the slide divides the range, and never more
than two a slide.  What falls between windows is in no pane.  States travel as they are
kept (``oop_engine.operators.slicing.accumulators``), so merging them loses nothing.

Source: panes after Li, Maier, Tufte, Papadimos, Tucker, SIGMOD Record 2005; two a slide
after Krishnamurthy, Wu, Franklin, SIGMOD 2006 (paired windows).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation, Arrays, Part
from oop_engine.operators.slicing.output import Output, Stamp
from oop_engine.operators.slicing.partials import States
from oop_engine.operators.slicing.window_assigner import bind
from oop_engine.operators.windows import Definition, Extents, Over, Windows

__all__ = ["PartialRows", "pane_starts"]

Integers = NDArray[np.int64]

PANE = "pane_start"


class PartialRows:
    """What rows of partial aggregates look like: ``schema``, and how they come into pages and out.

    ``tuples`` is the schema of the tuples themselves.  Raises ``GraphError`` in the name of
    ``what`` if the windows have no panes, or lengths, columns, types or names do not fit.
    """

    def __init__(
        self, windows: Windows, aggregates: Mapping[str, Aggregation], by: tuple[str, ...],
        tuples: Schema, what: str, stamp: Stamp = "end",
    ) -> None:  # fmt: skip
        self.extents = _with_panes(windows, bind(windows, tuples, by, what), what)
        self.output = Output({"": self.extents}, aggregates, tuples, by, stamp, what)
        kinds = [[column.dtype for column in state] for state in States(self.parts).columns]
        self._kinds = [(_names(i, part, len(some)), some)
                       for i, (part, some) in enumerate(zip(self.parts, kinds, strict=True))]  # fmt: skip
        self.schema = self._schema(tuples, by, what)

    @property
    def parts(self) -> list[Part]:
        """The partial aggregates of a row, in the order of their columns."""
        return self.output.parts

    def _schema(self, tuples: Schema, by: tuple[str, ...], what: str) -> Schema:
        fields = [(name, tuples.type_of(name)) for name in by]
        fields.append((PANE, self.output.schema.type_of("window_start")))
        for names, kinds in self._kinds:
            fields += [(name, _arrow(kind)) for name, kind in zip(names, kinds, strict=True)]
        if taken := sorted({name for name, _ in fields[len(by) :]} & set(by)):
            msg = (
                f"{what}: puts out columns of its own named {', '.join(taken)}; by has them too: rename those"
            )
            raise GraphError(msg)
        return Schema(pa.schema(fields), PANE, tuples.unit)

    def page(self, keys: Sequence[pa.Array], panes: Integers, states: Sequence[Arrays]) -> Page:
        """Return the page of rows with these keys, pane starts and states."""
        fields = self.schema.fields
        columns = [*keys, pa.array(panes).cast(fields.field(PANE).type)]
        columns += [_to_arrow(column) for state in states for column in state]
        return Page(self.schema, pa.RecordBatch.from_arrays(columns, schema=fields))

    def states(self, page: Page) -> list[Arrays]:
        """Return the states in the rows of ``page``."""
        return [
            tuple(_to_numpy(page.column(name), kind) for name, kind in zip(names, kinds, strict=True))
            for names, kinds in self._kinds
        ]

    def bound(self, bounds: Integers | int) -> Integers:
        """Return what bounds on tuples say of their panes: rounded down to the start of one.

        That closes the same windows.  ``NEVER`` and ``FOREVER`` stay what they are.
        """
        given = np.asarray(bounds, np.int64)
        margin = (self.extents.range or 0) + 2 * self.extents.slide + abs(self.extents.origin)
        inside = np.clip(given, NEVER + 1 + margin, FOREVER - 1 - margin)
        return np.where((given == NEVER) | (given == FOREVER), given, pane_starts(self.extents, inside))


def pane_starts(extents: Extents, times: Integers) -> Integers:
    """Return the start of the pane that each time is in: the last window edge there was.

    >>> pane_starts(Extents(range=7, slide=5, origin=0), np.array([0, 2, 3, 4, 5]))
    array([0, 0, 3, 3, 5])
    """
    assert extents.range is not None
    offset = times - extents.origin
    opened = offset // extents.slide * extents.slide
    closed = (offset + extents.range) // extents.slide * extents.slide - extents.range
    return extents.origin + np.maximum(opened, closed)


def _with_panes(windows: Windows, definition: Definition, what: str) -> Extents:
    """Return a definition if it has panes, else raise ``GraphError``."""
    if definition.over is not Over.ATTRIBUTE:
        msg = (
            f"{what}: windows must be on the progressing attribute, for the order of arrival is known in one "
            f"place only; got {windows}: use WindowAggregate, or a Sliding or Tumbling window"
        )
        raise GraphError(msg)
    if not isinstance(definition, Extents) or definition.landmark:
        msg = (
            f"{what}: windows must have a range, for landmark windows and sessions have no panes to let go of; "
            f"got {windows}: use WindowAggregate, or a Sliding or Tumbling window"
        )
        raise GraphError(msg)
    return definition


def _names(number: int, part: Part, columns: int) -> list[str]:
    name = f"state{number}_{part.kind}"
    return [name] if columns == 1 else [f"{name}_{i}" for i in range(columns)]


def _arrow(kind: np.dtype[Any]) -> pa.DataType:
    """Return the Arrow type of a state's column; numbers that Arrow lacks travel as their bytes."""
    try:
        return pa.from_numpy_dtype(kind)
    except pa.ArrowNotImplementedError:
        return pa.binary(kind.itemsize)


def _to_arrow(column: NDArray[Any]) -> pa.Array:
    kind = _arrow(column.dtype)
    if not pa.types.is_fixed_size_binary(kind):
        return pa.array(column, kind, from_pandas=False)
    buffer = pa.py_buffer(np.ascontiguousarray(column).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(kind, column.size, [None, buffer])


def _to_numpy(column: pa.Array, kind: np.dtype[Any]) -> NDArray[Any]:
    if not pa.types.is_fixed_size_binary(column.type):
        array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return array
    whole: NDArray[Any] = np.frombuffer(column.buffers()[1], kind)
    return whole[column.offset : column.offset + len(column)]
