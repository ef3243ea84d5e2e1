"""Corrected answers: the first and the final answer of each result, where results are emitted and retracted.

A row of a revision stream is final once punctuation has passed it at the sink.  So is one of new versions alone, or of
differences (``Emit(mode=...)``), which replaces the row of its keys, or adds to it.  Of each result, found by its keys,
the first row that was emitted is the first answer, right or wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.graphs.graph import Node, Plan, Stream
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.operator import Message, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear
from oop_engine.core.schema import Schema
from oop_engine.lab.recording import Recording
from oop_engine.lab.replaced import Replaced
from oop_engine.operators.revisions.net_rows import NetRows, changes_of
from oop_engine.operators.window_aggregate import WindowAggregate

__all__ = ["Answers", "Corrected", "Heard"]

Integers = NDArray[np.int64]


class Answers(NamedTuple):
    """Rows, and when each came, or became final: int64 (rows,)."""

    table: pa.Table
    at: Integers


class Corrected(NamedTuple):
    """The ``first`` and the ``final`` answers of a sink, and how many rows were retracted: ``revised``."""

    first: Answers
    final: Answers
    revised: int


class Heard:
    """A ``Watch`` that keeps the messages of ``sink``, in references alone, for a look when the run is over.

    Results have ``keys``, and are of ``schema``; rows that replace each other become changes (``replaced``).
    """

    def __init__(
        self, sink: str, schema: Schema, keys: Sequence[str], recording: Recording | None, replaced: Replaced | None
    ) -> None:  # fmt: skip
        self._sink, self._schema, self._keys, self._recording = sink, schema, keys, recording
        self._replaced = replaced
        self._heard: list[tuple[Message, int]] = []

    @classmethod
    def of(cls, plan: Plan, sink: Node, keys: Sequence[str], recording: Recording | None) -> Heard | None:
        """Return that of a sink to which versions of results go; None: all rows are final."""
        schema, before = plan.schema(sink.inputs[0]), plan.node(sink.inputs[0].node).operator
        if schema.change is not None:
            return cls(sink.name, schema, keys, recording, None)
        if not isinstance(before, WindowAggregate) or not before.for_sinks or before.emit is None:
            return None
        adds = list(before.aggregates) if before.emit.mode == "discarding" else []
        replaced = Replaced(schema, keys, adds)
        return cls(sink.name, replaced.revised, keys, recording, replaced)

    def passed(self, stream: Stream, node: str, message: Message, now: int) -> None:
        """Note a message."""
        if node == self._sink:
            self._heard.append((message, now))
        if self._recording is not None:
            self._recording.passed(stream, node, message, now)

    def kept(self, now: int, state: State) -> None:
        """Note a state."""
        if self._recording is not None:
            self._recording.kept(now, state)

    def corrected(self) -> Corrected:
        """Return the answers.  O(rows)."""
        schema, net, revised = self._schema, NetRows(self._schema), 0
        put_out, final = _Rows(schema.plain()), _Rows(schema.plain())
        end = self._heard[-1][1] if self._heard else 0
        for message, now in (*self._heard, (Linear(FOREVER), end)):
            for page in self._changes(message):
                changes = changes_of(page)
                revised += int(np.count_nonzero(changes < 0))
                put_out.add(page.filter(changes > 0), now)
                net.add(page)
            if isinstance(message, Linear | GroupWise) and net.knows(message):
                final.add(net.take(message), now)
        return Corrected(_firsts(put_out.answers(), self._keys), final.answers(), revised)

    def _changes(self, message: Message) -> Iterable[Page]:
        if not isinstance(message, Page):
            return ()
        return (message,) if self._replaced is None else self._replaced.changes(message)


class _Rows:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._batches, self._at = list[pa.RecordBatch](), [np.empty(0, np.int64)]

    def add(self, page: Page | None, now: int) -> None:
        if page is not None:
            self._batches.append(page.batch.select(self._schema.names))
            self._at.append(np.full(len(page), now))

    def answers(self) -> Answers:
        table = pa.Table.from_batches(self._batches, schema=self._schema.fields)
        return Answers(table.combine_chunks(), np.concatenate(self._at))


def _firsts(answers: Answers, keys: Sequence[str]) -> Answers:
    """Return the first row of each result."""
    table = answers.table
    index = GroupIndex([table.schema.field(name).type for name in keys])
    columns = [pa.concat_arrays(table.column(name).chunks) for name in keys] if table.num_rows else []
    slots = index.encode(columns, table.num_rows) if table.num_rows else np.empty(0, np.int64)
    rows = np.sort(np.unique(slots, return_index=True)[1])
    return Answers(table.take(pa.array(rows)), answers.at[rows])
