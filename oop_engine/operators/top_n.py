"""TopN: the first rows of each partition by an order, once no row can change them.

Pass       the first ``n`` rows of a partition, as soon as a bound has passed it; a plain or a revision stream.
Keep       the rows that no bound has passed, equal ones once with a count.  Without ``timed``, of a plain stream: the
           first ``n`` of each partition until its key or the stream ends, and up to as many others, for a later row
           only moves others back; of a revision stream all, for rows before them may be retracted.
Propagate  linear punctuation, behind the rows below it.  Group-wise punctuation whose attributes are among ``by``
           likewise; others are dropped, for they tell nothing of a whole partition.  Joint punctuation and
           watermarks end here: rows that leave are final.
           Without ``timed`` a partition is complete when its key or the stream ends, and only that goes on.
Cost       O(1) a row that comes, a hash look-up of all columns, without ``timed`` O(log rows); O(rows log rows) for
           those that a bound passes, and O(their rows) for the groups of a group-wise one; the first of these looks
           at all rows.
           Order needed: none; of rows that are equal in ``order`` those with smaller other columns are the first.
Source     ``ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) <= n`` of SQL; Window Top-N of Apache Flink.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.groups.zeros import with_unsigned_zeros, zeros_in
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.revisions.net_rows import NetRows
from oop_engine.system.knobs import knob

__all__ = ["TopN"]

Integers = NDArray[np.int64]
_FEW = knob(__name__, "_FEW", 1024)  # rows beside the first ones that may stay


@checked_arguments
class TopN(Operator):
    """The first ``n`` rows of each partition.

    Parameters
    ----------
    n
        How many; None: all, for their ``rank``.
    order
        Names of columns, each with a ``-`` before it for the largest first.  Nulls are the last.
    by
        Columns of a partition.
    timed
        Each event time is a partition of its own: of results of windows those of each window.
    rank
        Name of a new column, int64, with the place in the partition, from 1; None: no such column.
    ties
        ``"row_number"``: each row has a place of its own; ``"rank"``, ``"dense_rank"``: rows that are equal in
        ``order`` share one, with or without a gap behind them.

    Raises ``GraphError`` for unknown columns, those that have no order, and an ``n`` below 1.

    >>> from oop_engine.testing import Driver
    >>> schema = Schema({"end": pa.int64(), "host": pa.string(), "hits": pa.int64()}, "end", "s")
    >>> driver = Driver(TopN(1, "-hits", rank="place"), schema)
    >>> page = Page.of(schema, {"end": [10, 10, 20], "host": ["a", "b", "a"], "hits": [3, 7, 1]})
    >>> driver.feed(0, page), len(driver.feed(0, Linear(11)))
    ([], 2)
    >>> driver.rows()
    [{'end': 10, 'host': 'b', 'hits': 7, 'place': 1}]
    """

    revisions = "takes"
    waits = "rows"

    def __init__(
        self, n: int | None, order: Sequence[str], by: Sequence[str] = (), *, timed: bool = True,
        rank: str | None = None, ties: str = "row_number",
    ) -> None:  # fmt: skip
        if n is not None and n < 1:
            msg = f"TopN: n must be at least 1; got {n}"
            raise GraphError(msg)
        if ties not in ("row_number", "rank", "dense_rank"):
            msg = f"TopN: ties must be 'row_number', 'rank' or 'dense_rank'; got {ties!r}"
            raise GraphError(msg)
        self.n, self.order, self.by, self.timed = n, tuple(order), tuple(by), timed
        self.rank, self.ties = rank, ties

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        if self.timed:
            return None
        rows = "all rows" if self.n is None or inputs[0].change is not None else f"the first {self.n} rows"
        return f"{rows} of each key: which are the first is known when the key or the stream ends"

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        schema = inputs[0].plain()
        schema.require([*self.by, *(name.removeprefix("-") for name in self.order)], "TopN")
        for name in self.order:
            kind = schema.type_of(name.removeprefix("-"))
            if not _has_order(kind):
                msg = f"TopN: order must be of columns that have one; {name.removeprefix('-')!r} is {kind}"
                raise GraphError(msg)
        if self.rank is None:
            return (schema,)
        if self.rank in schema.names:
            msg = f"TopN: rank must be a new column; got {self.rank!r} beside {', '.join(schema.names)}"
            raise GraphError(msg)
        fields = schema.fields.append(pa.field(self.rank, pa.int64()))
        return (Schema(fields, schema.progressing, schema.unit),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return [(name,) for name in self.by if name != inputs[0].progressing]

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (None if column == self.rank else column,)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        # Rows that are equal in the order go by the other columns, one after the other: by all up to the last one read.
        schema = inputs[0].plain()
        needed = {*self.by, *(name.removeprefix("-") for name in self.order)}
        later = [name for name in schema.names if name in downstream[0] and name not in needed]
        if not all(_has_order(schema.type_of(name)) for name in later):
            return super().reads(inputs, downstream)
        ties = schema.names[: schema.names.index(later[-1]) + 1] if later else []
        return (frozenset(needed).union(ties),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        [schema] = self.schemas_in
        plain = schema.plain()
        self._rows = NetRows(schema)
        self._zeros = zeros_in(plain, self.by)
        rest = [name for name in plain.names if _has_order(plain.type_of(name))]
        self._order = [*self.order, *(name for name in rest if name not in self.order)]
        own = set(self.by) - ({plain.progressing} if self.timed else set())
        self._attributes = own | {plain.progressing} if self.timed else own
        self._first_alone = not self.timed and self.n is not None and schema.change is None
        self._kept = 0  # rows behind the last time that all but the first ones were dropped

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self._rows.add(with_unsigned_zeros(page, self._zeros))
        self._rows.tidy()
        if self._first_alone and self._rows.state().tuples > 2 * self._kept + _FEW:
            self._drop_others()
        yield from ()

    def _drop_others(self) -> None:
        """Drop the rows that are not among the first of their partition: no later row makes them so."""
        rows, slots, counts = self._rows.there()
        at, place = self._placed(rows, counts)
        assert self.n is not None
        self._rows.drop(np.sort(slots[at[place > self.n]]))
        self._kept = self._rows.state().tuples

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        bound = self._of_partitions(punctuation)
        if bound is None:
            return
        if (passed := self._rows.take(bound)) is not None:
            yield 0, self._first(passed)
        yield 0, bound

    def _of_partitions(self, punctuation: Punctuation) -> Linear | GroupWise | None:
        """Return the bound that completes partitions; None: it completes none as a whole."""
        match punctuation:
            case Linear(below) if self.timed or below == FOREVER:
                return punctuation
            case GroupWise() if set(punctuation.attributes) <= self._attributes:
                if self.timed:
                    return punctuation
                ended = punctuation.filter(punctuation.below == FOREVER)
                return ended if len(ended) else None
        return None

    def _first(self, passed: Page) -> Page:
        """Return the first rows of each partition, by event time."""
        at, place = self._placed(passed, np.ones(len(passed), np.int64))
        within = np.ones(at.size, np.bool_) if self.n is None else place <= self.n
        at, place = at[within], place[within]
        by_time = np.argsort(passed.times[at], kind="stable")
        at, place = at[by_time], place[by_time]
        rows = passed.batch.take(pa.array(at))
        if self.rank is not None:
            rows = pa.RecordBatch.from_arrays(
                [*rows.columns, pa.array(place)], schema=self.schemas_out[0].fields
            )
        return Page(self.schemas_out[0], rows)

    def _placed(self, page: Page, counts: Integers) -> tuple[Integers, Integers]:
        """Return the order of rows, each there ``counts`` times, and the places of their first copies, from 1."""
        groups = self._partitions(page)
        at = self._sorted(page, groups)
        groups, before = groups[at], np.cumsum(counts[at]) - counts[at]
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        number = before - np.repeat(before[starts], np.diff(starts, append=at.size))
        return at, number + 1 if self.ties == "row_number" else self._shared(page, at, number)

    def _partitions(self, page: Page) -> Integers:
        """Return the partition of each row, int64 (rows,)."""
        names = [*self.by, *([page.schema.progressing] if self.timed else [])]
        columns = [page.column(name) for name in dict.fromkeys(names)]
        index = GroupIndex([column.type for column in columns])
        return index.encode(columns, len(page))

    def _sorted(self, page: Page, groups: Integers) -> Integers:
        """Return the places of rows by partition, then ``order``, int64 (rows,)."""
        keys: dict[str, Any] = {"partition": pa.array(groups)}
        directions = [("partition", "ascending")]
        for i, name in enumerate(self._order):
            column = page.column(name.removeprefix("-"))
            column = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
            if (
                column.null_count
            ):  # Arrow has one place of nulls for all keys; so does this, whatever else is sorted
                keys[f"null{i}"] = pc.is_null(column)
                directions.append((f"null{i}", "ascending"))
            keys[f"key{i}"] = column
            directions.append((f"key{i}", "descending" if name.startswith("-") else "ascending"))
        order: Integers = pc.sort_indices(pa.table(keys), sort_keys=directions).to_numpy().astype(np.int64)
        return order

    def _shared(self, page: Page, at: Integers, number: Integers) -> Integers:
        """Return places that rows share which are equal in ``order``, from 1, int64 (rows,)."""
        columns = [page.column(name.removeprefix("-")) for name in self.order]
        index = GroupIndex([column.type for column in columns])
        values = index.encode(columns, len(page))[at]
        new = (number == 0) | np.concatenate([[True], values[1:] != values[:-1]])
        first = np.maximum.accumulate(np.where(new, np.arange(at.size), 0))
        begins = np.maximum.accumulate(np.where(number == 0, np.arange(at.size), 0))
        runs = np.cumsum(new)
        places: Integers = (number[first] if self.ties == "rank" else runs - runs[begins]) + 1
        return places

    def state(self) -> State:
        return self._rows.state()

    def counts(self) -> dict[str, int]:
        return {"behind": self._rows.behind.count}

    def save(self) -> dict[str, Any]:
        return {"rows": self._rows.save(), "kept": self._kept}

    def load(self, state: Saved) -> None:
        self._rows.load(state.part("rows"))
        self._kept = state.integer("kept", least=0) if "kept" in state else 0

    def describe(self) -> str:
        per_key = f" of {', '.join(self.by)}" if self.by else ""
        each = " at each event time" if self.timed else ""
        return f"TopN {'all' if self.n is None else self.n} by {', '.join(self.order)}{per_key}{each}"


def _has_order(kind: pa.DataType) -> bool:
    """Return whether values of a type can be sorted."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return not (pa.types.is_nested(plain) or pa.types.is_null(plain))
