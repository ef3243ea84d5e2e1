"""msgpack messages: payloads that are maps, each a row or a punctuation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from oop_engine.connectors.message_format import MessageFormat, register_message_format
from oop_engine.core.errors import EngineError
from oop_engine.core.operator import Message
from oop_engine.traces.casting import fits, reads_texts
from oop_engine.traces.format import LINE, REFUSED, readable
from oop_engine.traces.formats.json_rows import nested
from oop_engine.traces.punctuation_records import fit_punctuation, punctuation_of_body

__all__ = ["MsgpackMessages"]

_SHOWN = 1000  # characters of a row that cannot be read
_MARK = "punctuation"


@register_message_format("msgpack")
class MsgpackMessages(MessageFormat):
    """Payloads of maps, one after the other or in arrays; a map is a row, ``{"punctuation": ...}`` is as in JSON lines.

    Keys are the names of columns; one that is not there is null.  Numbers and texts are read as those of JSON are,
    moments may be timestamps of msgpack, and a payload that is damaged anywhere is left out as a whole.
    """

    by_lines = False

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return a list of all payloads."""
        return list(chain.from_iterable([p] if isinstance(p, bytes) else p for p in pieces))

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield the rows of payloads together, and punctuation where it stands."""
        maps = chain.from_iterable(map(self._maps, [data] if isinstance(data, bytes) else data))
        for is_punctuation, found in groupby(
            maps, lambda row: _MARK in row and _MARK not in self.schema.names
        ):
            if not is_punctuation:
                yield from self._pages([self._batch(list(found))])
                continue
            for each in found:
                try:
                    with readable(Path(self.place), "see docs/traces.md"):
                        body = punctuation_of_body(each[_MARK], self.schema.fields)
                        punctuation = fit_punctuation(body, self.schema.fields)
                except EngineError as error:
                    self._refuse(error, repr(each))
                else:
                    yield punctuation

    def _maps(self, payload: bytes) -> list[dict[str, Any]]:
        """Return the maps in a payload; none if it is refused."""
        try:
            with readable(Path(self.place), "send maps of msgpack, whole ones"):
                return _maps_of(payload)
        except EngineError as error:
            self._refuse(error, repr(payload[:40]))
            return []

    def _batch(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        self.unknown.add_rows(rows)
        fields = self.schema.fields
        columns = {field.name: _column([row.get(field.name) for row in rows], field.type) for field in fields}
        odd = [name for name, column in columns.items() if column is None]
        texts = [name for name in odd if reads_texts(fields.field(name).type)]
        lone = {name: fields.field(name).type for name in odd if name not in texts}
        reasons = [nested(row, texts) or _misfit(row, lone) for row in rows] if odd else []
        for name in texts:
            columns[name] = pa.array([_text(row.get(name)) for row in rows], pa.binary())
        for name, kind in lone.items():
            pairs = zip(reasons, rows, strict=True)
            columns[name] = pa.array([None if reason else row.get(name) for reason, row in pairs], kind)
        if any(reasons):
            pairs = zip(reasons, rows, strict=True)
            shown = [None if reason is None else repr(row)[:_SHOWN].encode() for reason, row in pairs]
            columns |= {REFUSED: pa.array(reasons, pa.string()), LINE: pa.array(shown, pa.binary())}
        return pa.RecordBatch.from_pydict(columns)


def _maps_of(payload: bytes) -> list[dict[str, Any]]:
    unpacker = msgpack.Unpacker(strict_map_key=True, max_buffer_size=max(len(payload), 1))
    unpacker.feed(payload)
    found = list(unpacker)
    if unpacker.tell() != len(payload):
        msg = f"it is cut off behind byte {unpacker.tell():,} of {len(payload):,}"
        raise ValueError(msg)
    rows = list(chain.from_iterable(each if isinstance(each, list) else [each] for each in found))
    if not rows or not all(isinstance(row, dict) for row in rows):
        msg = f"it must have a map a row; got {repr(found)[:40]}"
        raise ValueError(msg)
    return rows


def _misfit(row: dict[str, Any], kinds: dict[str, pa.DataType]) -> str | None:
    """Return the reason to refuse a row if a value of one of these columns, which texts cannot be, is none of its."""
    wrong = (name for name, kind in kinds.items() if _column([row.get(name)], kind) is None)
    found = next(wrong, None)
    return None if found is None else f"{found}: cannot read {row[found]!r:.80} as {kinds[found]}"


def _column(values: list[Any], kind: pa.DataType) -> pa.Array | None:
    """Return values in the type that they have; None: as ``kind`` they are to be read one by one, from their texts."""
    try:
        column = pa.array(values, kind if pa.types.is_nested(kind) else None)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError):
        return None
    rounded = pa.types.is_floating(column.type) and not pa.types.is_floating(
        kind
    )  # 3.0 is no integer, as in JSON
    return column if fits(column.type, kind) and not rounded else None


def _text(value: Any) -> bytes | None:
    """Return a value as it would stand in JSON; lists and maps have been refused."""
    match value:
        case None | list() | dict():
            return None
        case bytes():
            return value
        case bool():
            return b"true" if value else b"false"
        case msgpack.Timestamp():
            return _moment(value).encode()
    return str(value).encode()


def _moment(stamp: msgpack.Timestamp) -> str:
    """Return the moment of a timestamp in UTC, with as many digits as it needs."""
    digits = f"{stamp.nanoseconds:09d}".rstrip("0")
    return f"{np.datetime64(stamp.seconds, 's')}{'.' if digits else ''}{digits}Z"
