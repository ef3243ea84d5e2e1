"""Corrected answers: the first and the final answer of each result, where results are put out and taken back.

A row of a revision stream is final once punctuation has passed it at the sink.  Of each result, found by its keys,
the first row that was put out is the first answer, right or wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.graphs.graph import Stream
from oop_engine.core.groups.group_index import GroupIndex
from oop_engine.core.operator import Message, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, GroupWise, Linear
from oop_engine.core.schema import Schema
from oop_engine.lab.recording import Recording
from oop_engine.operators.revisions.net_rows import NetRows, changes_of

__all__ = ["Answers", "Corrected", "Heard"]

Integers = NDArray[np.int64]


class Answers(NamedTuple):
    """Rows, and when each came, or became final: int64 (rows,)."""

    table: pa.Table
    at: Integers


class Corrected(NamedTuple):
    """The ``first`` and the ``final`` answers of a sink, and how many rows were taken back: ``revised``."""

    first: Answers
    final: Answers
    revised: int


class Heard:
    """A ``Watch`` that keeps the messages of ``sink``, in references alone, for a look when the run is over."""

    def __init__(self, sink: str, recording: Recording | None) -> None:
        self._sink, self._recording = sink, recording
        self._heard: list[tuple[Message, int]] = []

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

    def corrected(self, schema: Schema, keys: Sequence[str]) -> Corrected:
        """Return the answers of a revision stream of ``schema``.  O(rows)."""
        net, revised = NetRows(schema), 0
        put_out, final = _Rows(schema.plain()), _Rows(schema.plain())
        end = self._heard[-1][1] if self._heard else 0
        for message, now in (*self._heard, (Linear(FOREVER), end)):
            if isinstance(message, Page):
                changes = changes_of(message)
                revised += int(np.count_nonzero(changes < 0))
                put_out.add(message.filter(changes > 0), now)
                net.add(message)
            elif isinstance(message, Linear | GroupWise) and net.knows(message):
                final.add(net.take(message), now)
        return Corrected(_firsts(put_out.answers(), keys), final.answers(), revised)


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
