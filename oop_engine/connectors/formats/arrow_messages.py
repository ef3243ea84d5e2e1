"""Arrow messages: payloads that are Arrow IPC streams, with punctuation as in a trace of Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from oop_engine.connectors.message_format import MessageFormat, register_message_format
from oop_engine.core.errors import EngineError, TraceError
from oop_engine.core.operator import Message
from oop_engine.core.values.arrow_data import check_unit
from oop_engine.core.values.column import column as column_of
from oop_engine.core.values.declared_values import fields_besides
from oop_engine.core.values.kinds import plain_type
from oop_engine.core.values.projected import projected
from oop_engine.traces.format import Record, readable
from oop_engine.traces.formats.arrow_ipc import punctuation_in
from oop_engine.traces.validation import check_names, check_types

__all__ = ["ArrowMessages"]


@register_message_format("arrow")
class ArrowMessages(MessageFormat):
    """Payloads that are Arrow IPC streams; columns are found by their names.

    A payload whose columns do not fit, or that is damaged anywhere, is left out as a whole.  A batch of no rows may
    carry punctuation in its metadata, as in a file of Arrow.
    """

    by_lines = False

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return a list of all payloads."""
        return list(chain.from_iterable([p] if isinstance(p, bytes) else p for p in pieces))

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield the rows of payloads together, and punctuation where it stands."""
        waiting: list[pa.RecordBatch] = []
        for payload in [data] if isinstance(data, bytes) else data:
            try:
                with readable(Path(self.place), "send an Arrow IPC stream of these columns"):
                    records = list(self._records(payload))
            except EngineError as error:
                self._refuse(error, repr(payload[:40]))
                continue
            for record in records:
                if isinstance(record, pa.RecordBatch):
                    waiting.append(record)
                else:
                    yield from self._together(waiting)
                    waiting = []
                    yield record
        yield from self._together(waiting)

    def _records(self, payload: bytes) -> Iterator[Record]:
        """Yield all records of a payload, with the columns of the schema; raises as readers of Arrow do."""
        place = Path(self.place)
        with pa.ipc.open_stream(payload) as reader:
            check_names(place, reader.schema)
            if taken := [name for name in reader.schema.names if name in self.metadata]:
                msg = f"{self.place}: {taken[0]} is a column of the message, and the payload has one, too"
                raise TraceError(msg)
            check_unit(reader.schema, self.schema.progressing, self.schema.unit, self.place)
            check_types(place, self._declared(reader.schema), self.columns)
            for batch, metadata in reader.iter_batches_with_custom_metadata():
                if (punctuation := punctuation_in(metadata)) is not None:
                    yield self._validation.punctuation(punctuation)
                else:
                    batch.validate(full=True)
                    for name in (*batch.schema.names, *self._besides(batch.schema)):
                        self.unknown.add(name, batch.num_rows)
                    columns = {name: batch.column(name) for name in self.columns.names}
                    kinds = {name: plain_type(column.type) for name, column in columns.items()}
                    yield pa.RecordBatch.from_pydict(
                        {
                            name: projected(
                                column_of(column, kinds[name], self.place), self.schema.type_of(name)
                            )
                            for name, column in columns.items()
                        }
                    )

    def _declared(self, fields: pa.Schema) -> pa.Schema:
        """Return the columns of a payload, those that are nested with the fields that are declared."""
        declared = _plain(fields)
        for at, field in enumerate(declared):
            if field.name in self.columns.names:
                kind = projected(pa.nulls(0, field.type), self.schema.type_of(field.name)).type
                declared = declared.set(at, field.with_type(kind))
        return declared

    def _besides(self, fields: pa.Schema) -> list[str]:
        """Return the paths of nested fields that are not declared."""
        known = [field for field in _plain(fields) if field.name in self.columns.names]
        return [
            path
            for each in known
            for path in fields_besides(each.type, self.schema.type_of(each.name), each.name)
        ]

    def _together(self, waiting: list[pa.RecordBatch]) -> Iterator[Message]:
        """Yield pages of some rows, those of alike columns as one."""
        for _, alike in groupby(waiting, lambda batch: batch.schema):
            yield from self._pages(pa.Table.from_batches(list(alike)).combine_chunks().to_batches())


def _plain(fields: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, plain_type(field.type)) for field in fields])
