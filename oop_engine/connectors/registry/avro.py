"""Avro: messages of Confluent's wire format, whose schemas are in a schema registry."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.connectors.library import library
from oop_engine.connectors.message_format import MessageFormat
from oop_engine.connectors.payload import Metadata
from oop_engine.connectors.registry.avro_types import arrow_type, avro_record, read_uuids, without_times
from oop_engine.connectors.registry.debezium_avro import DebeziumAvro
from oop_engine.connectors.registry.declared_format import DeclaredFormat, PayloadsOf
from oop_engine.connectors.registry.plain_cells import plain_cells
from oop_engine.connectors.registry.registry_messages import RegistryMessages, Rows
from oop_engine.connectors.registry.schemas import Schemas
from oop_engine.connectors.registry.wire import HEAD, with_head
from oop_engine.core.schema import Schema
from oop_engine.core.values.declared_values import as_is, fields_besides, nested_column
from oop_engine.core.values.kinds import converts, misread, way_out
from oop_engine.core.values.projected import projected
from oop_engine.core.values.python_values import of_values

__all__ = ["Avro"]

_MOST = 200
_BROKEN = (
    EOFError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, MemoryError
)  # fmt: skip
"""Errors of a content that is not of its schema."""


class Avro(DeclaredFormat):
    """Messages of Avro with a schema registry at ``registry``, as ``"http://127.0.0.1:8081"``; needs the extra avro.

    A source reads each message by the schema that it names, and takes the columns of its own schema by name: a column
    that the message has not is null, others are left out and counted; numbers, texts and moments go by the rules of all
    formats.  A sink registers the schema of its rows under ``subject`` (the topic and ``-value``).  ``registry`` may
    also be a client of confluent-kafka; ``options`` are those of its ``SchemaRegistryClient``.  ``debezium``: messages
    are envelopes of Debezium.
    """

    name = "avro"

    def __init__(
        self,
        registry: Any,
        *,
        subject: str | None = None,
        options: dict[str, Any] | None = None,
        debezium: bool = False,
    ) -> None:
        self._registry, self._subject, self._options = registry, subject, options
        self._debezium = debezium

    def reader(
        self, schema: Schema, place: str, unreadable: Callable[..., None], metadata: Metadata
    ) -> MessageFormat:
        """Return the format of a source."""
        read_uuids(library("fastavro", "avro", place))
        if self._debezium:
            return DebeziumAvro(schema, place, unreadable, self._schemas(place), metadata)
        return _AvroMessages(schema, place, unreadable, self._schemas(place), metadata)

    async def writer(self, fields: pa.Schema, topic: str, place: str) -> PayloadsOf:
        """Register the schema of some columns, and return the function that makes messages of rows."""
        fastavro = library("fastavro", "avro", place)
        record = avro_record(fields, topic, place)
        number = await self._schemas(place).register(
            self._subject or f"{topic}-value", json.dumps(record), "AVRO"
        )
        parsed = fastavro.parse_schema(without_times(record))

        def payloads_of(rows: pa.RecordBatch) -> list[bytes]:
            names, columns = rows.schema.names, map(plain_cells, rows.columns)
            payloads = []
            for row in zip(*columns, strict=True):
                content = BytesIO()
                fastavro.schemaless_writer(content, parsed, dict(zip(names, row, strict=True)))
                payloads.append(with_head(number, content.getvalue()))
            return payloads

        return payloads_of

    def _schemas(self, place: str) -> Schemas:
        return Schemas(self._registry, "avro", place, self._options)


@dataclass
class _Written:
    """A schema of messages, ``parsed`` by fastavro, whose function is ``read``.

    ``kinds``: by column, the type of its values (None: they have several).  ``misfits``: the columns whose values can
    become none of the declared type, each with the reason.
    """

    parsed: Any
    read: Callable[[Any, Any], Any]
    kinds: Mapping[str, pa.DataType | None]
    misfits: Mapping[str, str]


class _AvroMessages(RegistryMessages):
    def _schema_of(self, text: str, kind: str, references: dict[str, str]) -> _Written:
        fastavro = library("fastavro", "avro", self.place)
        if kind not in ("AVRO", None):
            msg = f"it is of {kind}, not Avro"
            raise ValueError(msg)
        named: dict[str, Any] = {}
        try:
            for each in references.values():
                fastavro.parse_schema(json.loads(each), named)
            whole = fastavro.parse_schema(json.loads(text), named)
        except Exception as error:  # of any class: those of fastavro have no base of their own
            raise ValueError(str(error) or type(error).__name__) from error
        if not isinstance(whole, dict) or whole.get("type") != "record":
            msg = "it must be a record: its fields are the columns"
            raise ValueError(msg)
        kinds = {each["name"]: arrow_type(each["type"], named) for each in whole["fields"]}
        parsed = self._parsed(fastavro, whole, kinds, references)
        return _Written(parsed, fastavro.schemaless_reader, kinds, self._misfits(kinds))

    def _parsed(
        self, fastavro: Any, whole: dict[str, Any], kinds: Mapping[str, Any], references: dict[str, str]
    ) -> Any:
        """Return the schema by which contents are read: where a column has one type, its times are numbers."""
        named: dict[str, Any] = {}
        for each in references.values():
            fastavro.parse_schema(without_times(json.loads(each)), named)
        fields = [
            {**each, "type": without_times(each["type"], *([()] if kinds[each["name"]] is None else []))}
            for each in whole["fields"]
        ]
        plain = {name: each for name, each in whole.items() if not name.startswith("__")}
        return fastavro.parse_schema({**plain, "fields": fields}, named)

    def _misfits(self, kinds: Mapping[str, pa.DataType | None]) -> dict[str, str]:
        misfits = {}
        for field in self.columns:
            if (kind := kinds.get(field.name)) is None or pa.types.is_null(kind):
                continue
            kind = projected(pa.nulls(0, kind), field.type).type
            if not converts(kind, field.type):
                hint = way_out(kind, field.type)
                misfits[field.name] = (
                    f"{field.name}: cannot read {kind} as {field.type}: declare it as {kind}, or {hint}"
                )
        return misfits

    def _rows(self, schema: _Written, payloads: list[bytes]) -> Rows:
        rows, reasons = [], list[str | None]()
        for payload in payloads:
            row, reason = self._row(schema, payload)
            rows.append(row)
            reasons.append(reason)
        read = sum(reason is None for reason in reasons)
        for name in schema.kinds if read else ():
            self.unknown.add(name, read)
        for field in self.columns if read else ():
            for path in fields_besides(schema.kinds.get(field.name) or pa.null(), field.type, field.name):
                self.unknown.add(path, read)
        return {field.name: self._column(schema, field, rows, reasons) for field in self.columns}, reasons

    def _row(self, schema: _Written, payload: bytes) -> tuple[dict[str, Any], str | None]:
        """Return the fields of a message, and the reason why it cannot be read."""
        content = BytesIO(payload)
        content.seek(HEAD)
        try:
            row = schema.read(content, schema.parsed)
        except _BROKEN as error:
            return {}, f"the content is not of its schema: {str(error) or type(error).__name__}"[:_MOST]
        if (left := len(payload) - content.tell()) > 0:
            return {}, f"the content is not of its schema: {left} bytes are left over"
        for name, reason in schema.misfits.items():
            if row.get(name) is not None:
                return row, reason
        return row, None

    def _column(
        self, schema: _Written, field: pa.Field, rows: list[dict[str, Any]], reasons: list[str | None]
    ) -> pa.Array:
        """Return a column in the type that its values have; rows without a value in it get a reason."""
        cells = [row.get(field.name) if why is None else None for row, why in zip(rows, reasons, strict=True)]
        kind = schema.kinds.get(field.name)
        if kind is not None and field.name not in schema.misfits:
            return projected(_sound(cells, kind, field.name, reasons), field.type)
        if pa.types.is_nested(field.type):
            return nested_column(cells, field, lambda path: self.unknown.add(path, 1), as_is, reasons)
        column, lost = of_values(cells, field.type)
        for at in () if lost is None else np.flatnonzero(lost.to_numpy(zero_copy_only=False)).tolist():
            reasons[at] = reasons[at] or misread(field.name, cells[at], field.type)
        return column


def _sound(cells: list[Any], kind: pa.DataType, name: str, reasons: list[str | None]) -> pa.Array:
    """Return cells as an array; those that the type of their schema has not get a reason."""
    try:
        column = pa.array(cells, kind)
        column.validate(full=True)
    except (pa.ArrowException, *_BROKEN) as error:
        if len(cells) == 1:
            reasons[0] = reasons[0] or f"{name}: cannot read {cells[0]!r:.80} as {kind}: {error}"[:_MOST]
            return pa.nulls(1, kind)
        parts = []
        for at, cell in enumerate(cells):
            why = [reasons[at]]
            parts.append(_sound([cell], kind, name, why))
            reasons[at] = why[0]
        return pa.concat_arrays(parts)
    return column
