"""Records: the rows that travel between the tasks of Spark.

Spark sees rows of a few numbers and one binary, never tuples: it would turn each into an object of
its own and back, at a microsecond a tuple and direction, twice the time of all operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgpack
import pyarrow as pa

from oop_engine.core.change import Change
from oop_engine.core.page import Page, concat
from oop_engine.core.progress import Progress
from oop_engine.core.punctuation import Joint, Punctuation
from oop_engine.core.schema import Schema
from oop_engine.runners.dispatch import Signal
from oop_engine.spark.io.page_bytes import page_bytes
from oop_engine.traces.formats.msgpack_frames import frame_of
from oop_engine.traces.punctuation_records import punctuation_of

__all__ = [
    "COLUMNS",
    "DDL",
    "FIELDS",
    "METRICS",
    "EdgeMessage",
    "Record",
    "gathered",
    "pack_messages",
    "unpack_messages",
]

EdgeMessage = Page | Punctuation | Change | Signal
"""A message on an edge; of the signals only END travels."""

METRICS = -1
"""The edge of records with task metrics, and of those that name a state: they reach the driver, and no sink."""

FIELDS = pa.schema(
    [
        ("target", pa.int32()),
        ("edge", pa.int32()),
        ("channel", pa.int32()),
        ("seq", pa.int64()),
        ("tuples", pa.int64()),
        ("body", pa.binary()),
    ]
)
COLUMNS = FIELDS.names
DDL = "target int, edge int, channel int, seq long, tuples long, body binary"


class Record(NamedTuple):
    """One row: messages of one edge, from one subtask (``channel``) to one key group (``target``).

    ``seq`` orders the records of a channel.  ``tuples``: how many are in it.
    """

    target: int
    edge: int
    channel: int
    seq: int
    tuples: int
    body: bytes


def gathered(schema: Schema, messages: Iterable[EdgeMessage]) -> list[EdgeMessage]:
    """Return the same in the fewest messages: changes, all tuples in one page, then punctuation.

    A bound may always come later than it was made, for operators that do not need order; and a change earlier.
    """
    changes: list[EdgeMessage] = []
    pages: list[Page] = []
    progress, joint, ends = (
        Progress(1, remember_ended=True),
        dict[tuple[str, ...], EdgeMessage](),
        list[EdgeMessage](),
    )
    for message in messages:
        match message:
            case Page():
                pages.append(message)
            case Joint():
                joint[message.attributes] = message
            case Signal():
                ends.append(message)
            case Change():
                changes.append(message)
            case _:
                progress.advance(0, message)
    whole: list[EdgeMessage] = [concat(schema, pages)] if pages else []
    return [*changes, *whole, *progress.punctuation(), *joint.values(), *ends]


def pack_messages(messages: Iterable[EdgeMessage]) -> tuple[int, bytes]:
    """Return how many tuples there are in some messages, and the messages as bytes."""
    parts = list(messages)
    tuples = sum(len(m) for m in parts if isinstance(m, Page))
    return tuples, bytes(msgpack.packb([_plain(message) for message in parts]))


def unpack_messages(schema: Schema, body: bytes) -> Iterator[EdgeMessage]:
    """Yield the messages of ``body``, which ``pack_messages`` made."""
    for frame in msgpack.unpackb(body):
        match frame:
            case ["page", data]:
                yield Page(schema, pa.ipc.open_stream(data).read_next_batch())
            case ["end"]:
                yield Signal.END
            case ["change", plain]:
                yield Change.of_frame(plain)
            case _:
                yield punctuation_of(frame)


def _plain(message: EdgeMessage) -> list[Any]:
    match message:
        case Page():
            return ["page", page_bytes(message)]
        case Signal():
            return ["end"]
        case Change():
            return ["change", message.frame()]
        case _:
            return frame_of(message)
