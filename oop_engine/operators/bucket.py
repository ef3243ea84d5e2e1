"""Bucket: tags each tuple with the windows it is in, and knows nothing of aggregates.

All that depends on the kind of window is here; ``Aggregate`` behind it groups by window id
as by any other attribute.  A range of ids is two columns, not a copy of the tuple for each.

    Pass       every tuple, at once, with ``first_wid`` and ``last_wid`` (int64, inclusive;
               last < first: in no window; landmark: last is the largest int64).  Tuple-based
               windows also add ``row``, the arrival number, as the progressing attribute.
    Keep       nothing; tuple-based: the next number, partitioned: one for each group.
    Propagate  linear and group-wise bounds, rounded down to the end of the last window they
               close (so that is punctuation on the window id, in the unit of the attribute),
               when that has grown; joint ones as they are.  Tuple-based: after each page
               the next number, partitioned: of the page's groups; of the input's punctuation
               only the end of a group or the stream.
    Cost       O(1) a tuple, in NumPy; O(1) a linear punctuation, a group-wise one its groups.  Order needed: none.

Source: thesis 6.1.3.1, figure 6-2; all windows that end by a bound are closed, not only
the one whose id equals the punctuation's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.slicing.tagger import Tagger, bind
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.windows import Extents, Over, Windows, divisible_by, is_grid

__all__ = ["Bucket"]


@checked_arguments
class Bucket(Operator):
    """Adds ``first_wid`` and ``last_wid`` for ``windows``; ``by`` only for partitioned windows.

    Raises ``GraphError`` if lengths do not fit the unit, or a column's name is taken.

    >>> import pyarrow as pa
    >>> from oop_engine import Page, Schema
    >>> from oop_engine.operators.windows import Sliding
    >>> schema = Schema({"ts": pa.int64()}, "ts", "s")
    >>> bucket = Bucket(Sliding(range=10, slide=5)).opened(schema)
    >>> [(_, page)] = bucket.on_page(0, Page.of(schema, {"ts": [7]}))
    >>> page.to_pylist()
    [{'ts': 7, 'first_wid': 1, 'last_wid': 2}]
    >>> list(bucket.on_punctuation(0, Linear(14)))
    [(0, Linear(below=10))]
    """

    def __init__(self, windows: Windows, by: Sequence[str] = ()) -> None:
        self.windows = windows
        self.by = tuple(by)

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        schema = inputs[0]
        extents = self._bound(schema)
        numbered = extents.over is not Over.ATTRIBUTE
        added = [*(["row"] if numbered else []), "first_wid", "last_wid"]
        if taken := [name for name in added if name in schema.names]:
            msg = f"Bucket: adds the columns {', '.join(added)}; the input has {', '.join(taken)}: rename it"
            raise GraphError(msg)
        fields = pa.schema([*schema.fields, *(pa.field(name, pa.int64()) for name in added)])
        if numbered:
            return (Schema(fields, "row", "rows"),)
        return (Schema(fields, schema.progressing, schema.unit),)

    def _bound(self, schema: Schema) -> Extents:
        definition = bind(self.windows, schema, self.by, "Bucket")
        if not is_grid(definition):
            msg = f"Bucket: windows must have ids that a tuple alone gives; got {self.windows}: use WindowAggregate"
            raise GraphError(msg)
        return definition

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]] | None:
        extents = self._bound(inputs[0])
        return None if extents.over is Over.ATTRIBUTE else divisible_by(self.windows, self.by, inputs[0])

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (column if column in inputs[0].names else None,)

    def open(self) -> None:
        schema = self.schemas_in[0]
        self._extents = self._bound(schema)
        self._tagger = Tagger(self._extents.over, schema, self.by)
        self._progress = Progress(tables=IN_KERNELS)

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        positions, punctuation = self._tagger.tag(page)
        numbers = [] if self._extents.over is Over.ATTRIBUTE else [positions]
        columns = [pa.array(a) for a in (*numbers, *self._extents.wids(positions))]
        schema = self.schemas_out[0]
        batch = pa.RecordBatch.from_arrays([*page.batch.columns, *columns], schema=schema.fields)
        yield 0, Page(schema, batch)
        if punctuation is not None:
            yield from self._rounded(punctuation)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        translated = self._tagger.translate(punctuation)
        if translated is not None:
            yield from self._rounded(translated)

    def _rounded(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Pass a punctuation on, its bound rounded down to the end of the last window it closes."""
        match punctuation:
            case Linear(below):
                punctuation = Linear(int(self._extents.boundary(below)))
            case GroupWise(groups, bounds):
                punctuation = GroupWise(groups, self._extents.boundary(bounds))
            case Watermark(bound):
                punctuation = punctuation.with_bounds(self._extents.boundary(bound.below))
            case Joint():
                pass
        for grown in self._progress.advance(0, punctuation):
            yield 0, grown

    def state(self) -> State:
        nbytes = self._tagger.nbytes + self._progress.nbytes
        return State(groups=self._tagger.groups, nbytes=nbytes)

    def save(self) -> dict[str, Any]:
        return {"tagger": self._tagger.save(), "progress": self._progress.save()}

    def load(self, state: Saved) -> None:
        self._tagger.load(state.part("tagger"))
        self._progress.load(state.part("progress"))

    def describe(self) -> str:
        return f"Bucket({describe_value(self.windows)})"
