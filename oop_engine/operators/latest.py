"""Latest: each tuple that fits a predicate counts until the next one of its key (predicate windows).

Which trucks are parked now?  A truck's tuple counts while it is the truck's last one, and only if it tells of
parking.  As with ``Expire`` that is a tuple with weight +1, and later the same one with -1; here the later time is that
of the key's next tuple, so both wait until a bound has passed it.

    Pass       with punctuation: a tuple for which ``where`` is true with weight +1 at its time, and with -1 at the next
               time of its key.  Tuples of one key and time all count, and all take the place of those before.
    Keep       tuples that no bound has passed; and of each key those that count now, also of keys that end: they
               count until the key's next tuple.
    Propagate  linear punctuation as it is: nothing leaves before it that is not below it.  Others are dropped.
    Cost       O(log n) a tuple that is held, and one that counts; O(tuples passed, and those of their keys that
               count) a linear punctuation.
               Order needed: none; its output is in order.
    Source     predicate windows: Ghanem, Aref, Elmagarmid, SIGMOD Record 35(1), 2006.

``WindowAggregate(Landmark(slide), {"n": Sum("weight")})`` behind it is how many count at each multiple of ``slide``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.groups.zeros import with_unsigned_zeros, zeros_in
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page, concat
from oop_engine.core.punctuation import FOREVER, NEVER, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.keys.key_rows import KeyRows
from oop_engine.operators.ordering.reorder_buffer import ReorderBuffer
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.values.expressions import (
    Expression,
    columns_of,
    evaluate,
    mask_of,
    require_boolean,
    text_of,
)
from oop_engine.system.knobs import knob

__all__ = ["Latest"]

_MOST = knob(__name__, "_MOST", 65_536)  # rows of a page


@checked_arguments
class Latest(Operator):
    """Adds ``at``, the progressing attribute of the output, and ``weight``, an int64 column of +1 and -1.

    ``by``: the columns of the key; ``where``: a predicate as of ``Filter``; null is not true.  The last of a key is
    not retracted at the end.  Raises ``GraphError`` for unknown columns, without a key, for a predicate that is
    none, and for names that are taken.

    >>> import pyarrow.compute as pc
    >>> schema = Schema({"ts": pa.int64(), "truck": pa.string(), "parked": pa.bool_()}, "ts", "s")
    >>> parked = Latest(by=("truck",), where="parked").opened(schema)
    >>> rows = {"ts": [7, 3], "truck": ["a", "a"], "parked": [False, True]}
    >>> list(parked.on_page(0, Page.of(schema, rows)))
    []
    >>> (_, page), behind = parked.on_punctuation(0, Linear(10))
    >>> page.to_pylist()  # doctest: +NORMALIZE_WHITESPACE
    [{'ts': 3, 'truck': 'a', 'parked': True, 'at': 3, 'weight': 1},
     {'ts': 3, 'truck': 'a', 'parked': True, 'at': 7, 'weight': -1}]
    """

    waits = "tuples"

    def __init__(
        self, by: Sequence[str], where: Expression, *, at: str = "at", weight: str = "weight"
    ) -> None:
        if not by:
            msg = "Latest: by must be one column or more, such as by='truck'; got none"
            raise GraphError(msg)
        self.by, self.where, self.at, self.weight = tuple(by), where, at, weight

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        [schema] = inputs
        schema.require(self.by, "Latest: by")
        require_boolean("Latest", [self.where], schema)
        names = [*schema.names, self.at, self.weight]
        if len(set(names)) < len(names):
            msg = f"Latest: at and weight must be new columns; got {self.at!r}, {self.weight!r} beside {schema.names}"
            raise GraphError(msg)
        fields = schema.fields.append(pa.field(self.at, schema.type_of(schema.progressing)))
        return (Schema(fields.append(pa.field(self.weight, pa.int64())), self.at, schema.unit),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return [(name,) for name in self.by]

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        return "the rows of each key that count, also of keys that end: they count until the key's next row"

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return (None if column in (self.at, self.weight) else column,)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        own = columns_of([self.where], inputs[0]).union(self.by)
        return (own | (downstream[0] & frozenset(inputs[0].names)),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        [schema] = self.schemas_in
        self._held, self._counting, self._below = ReorderBuffer(schema), KeyRows(schema, self.by), NEVER
        self._zeros = zeros_in(schema, self.by)

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self._held.add(with_unsigned_zeros(page, self._zeros))
        yield from ()

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if not isinstance(punctuation, Linear) or punctuation.below <= self._below:
            return
        self._below = punctuation.below
        if (passed := self._held.release(punctuation.below)) is not None:
            yield from self._changes(passed)
        if punctuation.below == FOREVER:
            self._counting.clear()
        yield 0, punctuation

    def _changes(self, passed: Page) -> Iterator[Emission]:
        """Yield the changes by tuples that a bound has passed, in order of time."""
        slots = self._counting.slots(passed)
        keys = slots[np.sort(np.unique(slots, return_index=True)[1])]  # in an order that no restart changes
        counting = self._counting.take(keys)
        both = concat(self.schemas_in[0], [counting, passed])
        slots = np.concatenate([self._counting.slots(counting), slots])
        [true] = evaluate("Latest", [self.where], [pa.bool_()], both.batch)
        fits, rows = mask_of(true), np.arange(len(both))
        following = _following(slots, both.times)
        new, over = fits & (rows >= len(counting)), fits & (following < FOREVER)
        rows_of = np.concatenate([rows[new], rows[over]])
        at = np.concatenate([both.times[new], following[over]])
        weights = np.repeat(np.array([1, -1]), [new.sum(), over.sum()])
        order = np.argsort(at, kind="stable")
        for begin in range(0, order.size, _MOST):
            part = order[begin : begin + _MOST]
            yield 0, self._page(both, rows_of[part], at[part], weights[part])
        stays = fits & (following == FOREVER)
        self._counting.put(both.filter(stays), slots[stays])

    def _page(self, both: Page, rows: Any, at: Any, weights: Any) -> Page:
        [schema] = self.schemas_out
        columns = [*both.batch.take(pa.array(rows)).columns, pa.array(at).cast(schema.type_of(self.at))]
        return Page(schema, pa.RecordBatch.from_arrays([*columns, pa.array(weights)], schema=schema.fields))

    def state(self) -> State:
        tuples = self._held.tuples + len(self._counting)
        return State(tuples=tuples, nbytes=self._held.nbytes + self._counting.nbytes)

    def save(self) -> dict[str, Any]:
        return {"held": self._held.save(), "counting": self._counting.page().batch, "below": self._below}

    def load(self, state: Saved) -> None:
        self._held.load(state.part("held"))
        counting = Page(self.schemas_in[0], state.batch("counting", self.schemas_in[0].fields))
        self._counting.put(counting, self._counting.slots(counting))
        self._below = state.integer("below")

    def describe(self) -> str:
        return f"Latest(by {', '.join(self.by)}, where {text_of(self.where)})"


def _following(slots: Integers, times: Integers) -> Integers:
    """Return the next time of the key ``slots[i]`` behind ``times[i]``, ``FOREVER`` behind the last."""
    order = np.lexsort((times, slots))
    slot, time = slots[order], times[order]
    starts = np.flatnonzero(np.diff(slot, prepend=-1) | np.diff(time, prepend=time[:1] - 1))
    nexts = np.full(starts.size, FOREVER)
    same = slot[starts[1:]] == slot[starts[:-1]]
    nexts[:-1][same] = time[starts[1:]][same]
    following = np.empty(slots.size, np.int64)
    following[order] = np.repeat(nexts, np.diff(starts, append=slots.size))
    return following
