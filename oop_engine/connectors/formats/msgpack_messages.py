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
from oop_engine.core.values.declared_values import nested_column
from oop_engine.core.values.kinds import misread
from oop_engine.core.values.python_values import of_values
from oop_engine.traces.format import LINE, REFUSED, readable
from oop_engine.traces.formats.repeated_keys import of_pairs, twice
from oop_engine.traces.punctuation_records import fit_punctuation, is_punctuation, punctuation_of_body

__all__ = ["MsgpackMessages"]

_SHOWN = 1000  # characters of a row that cannot be read


@register_message_format("msgpack")
class MsgpackMessages(MessageFormat):
    """Payloads of maps, one after the other or in arrays; a map is a row, ``{"punctuation": ...}`` is as in JSON lines.

    Keys are the names of columns; one that is not there is null.  A timestamp of msgpack is an instant in UTC, and a
    payload that is damaged anywhere is left out as a whole.
    """

    by_lines = False

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return a list of all payloads."""
        return list(chain.from_iterable([p] if isinstance(p, bytes) else p for p in pieces))

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield the rows of payloads together, and punctuation where it stands."""
        maps = chain.from_iterable(map(self._maps, [data] if isinstance(data, bytes) else data))
        for no_row, group in groupby(maps, lambda row: is_punctuation(row, self.schema.names)):
            if not no_row:
                yield from self._pages([self._batch(list(group))])
                continue
            for each in group:
                try:
                    with readable(Path(self.place), "see docs/traces.md"):
                        body = punctuation_of_body(_once(each["punctuation"]), self.schema.fields)
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

    def _nested(
        self, rows: list[dict[str, Any]], name: str, kind: pa.DataType, reasons: dict[int, str]
    ) -> pa.Array:
        """Return a column of lists, maps or structs; rows that have others get a reason."""
        misfits: list[str | None] = [None] * len(rows)
        field, values = pa.field(name, kind), [row.get(name) for row in rows]
        column = nested_column(values, field, lambda path: self.unknown.add(path, 1), _leaf, misfits)
        for at, why in enumerate(misfits):
            if why is not None:
                reasons.setdefault(at, why)
        return column

    def _batch(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        self.unknown.add_rows(rows)
        columns: dict[str, pa.Array] = {}
        reasons = {
            at: why for at, row in enumerate(rows) if (why := twice(row, self.schema.names)) is not None
        }
        for name in self.metadata:  # a row that has one is refused
            columns[name] = pa.array([None if row.get(name) is None else True for row in rows], pa.bool_())
        for name, kind in zip(self.columns.names, self.columns.types, strict=True):
            if pa.types.is_nested(kind):
                columns[name] = self._nested(rows, name, kind, reasons)
                continue
            cells = [_given(row.get(name)) for row in rows]
            columns[name], lost = of_values(cells, kind)
            for row in () if lost is None else np.flatnonzero(lost.to_numpy(zero_copy_only=False)).tolist():
                reasons.setdefault(row, misread(name, rows[row][name], kind))
        if reasons:
            shown = [repr(row)[:_SHOWN].encode() if at in reasons else None for at, row in enumerate(rows)]
            columns[REFUSED] = pa.array([reasons.get(at) for at in range(len(rows))], pa.string())
            columns[LINE] = pa.array(shown, pa.binary())
        return pa.RecordBatch.from_pydict(columns)


def _maps_of(payload: bytes) -> list[dict[str, Any]]:
    unpacker = msgpack.Unpacker(
        strict_map_key=True, max_buffer_size=max(len(payload), 1), object_pairs_hook=of_pairs
    )
    unpacker.feed(payload)
    objects = list(unpacker)
    if unpacker.tell() != len(payload):
        msg = f"it is cut off behind byte {unpacker.tell():,} of {len(payload):,}"
        raise ValueError(msg)
    rows = list(chain.from_iterable(each if isinstance(each, list) else [each] for each in objects))
    if not rows or not all(isinstance(row, dict) for row in rows):
        msg = f"it must have a map a row; got {repr(objects)[:40]}"
        raise ValueError(msg)
    return rows


def _once(body: Any) -> Any:
    """Return a punctuation; raises ``ValueError`` if an object in it has a key twice."""
    for each in [body, *body.values()] if isinstance(body, dict) else ():
        if isinstance(each, dict) and (reason := twice(each)) is not None:
            raise ValueError(reason)
    return body


def _leaf(value: Any, kind: pa.DataType, path: str) -> Any:
    return _given(value)


def _given(value: Any) -> Any:
    """Return a value as Python has it; a moment of msgpack is an instant in UTC."""
    return _moment(value) if value.__class__ is msgpack.Timestamp else value


def _moment(stamp: msgpack.Timestamp) -> str:
    """Return the moment of a timestamp in UTC, with as many digits as it needs."""
    digits = f"{stamp.nanoseconds:09d}".rstrip("0")
    return f"{np.datetime64(stamp.seconds, 's')}{'.' if digits else ''}{digits}Z"
