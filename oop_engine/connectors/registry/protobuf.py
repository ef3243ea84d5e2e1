"""Protobuf: messages of Confluent's wire format, whose schemas are in a schema registry."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from oop_engine.connectors.library import library
from oop_engine.connectors.message_format import MessageFormat
from oop_engine.connectors.payload import Metadata
from oop_engine.connectors.registry.declared_format import DeclaredFormat, PayloadsOf
from oop_engine.connectors.registry.protobuf_pool import message_types
from oop_engine.connectors.registry.protobuf_text import as_descriptors
from oop_engine.connectors.registry.protobuf_types import fill, protobuf_file
from oop_engine.connectors.registry.protobuf_values import value_of
from oop_engine.connectors.registry.registry_messages import RegistryMessages, Rows
from oop_engine.connectors.registry.schemas import Schemas
from oop_engine.connectors.registry.wire import indexes_of, with_head
from oop_engine.core.schema import Schema
from oop_engine.core.values.declared_values import as_is, nested_column
from oop_engine.core.values.kinds import misread
from oop_engine.core.values.python_values import of_values

__all__ = ["Protobuf"]

_FIRST = b"\0"
"""The path to the first message type of a schema."""


class Protobuf(DeclaredFormat):
    """Messages of Protobuf with a schema registry at ``registry``; needs the extra protobuf.

    A source reads each message by the schema that it names: columns are its fields, by name.  A field that is not set
    is null if it has presence (``optional``, a message, in a ``oneof``), else it is the zero of its type.  A sink
    registers the schema of its rows under ``subject`` (the topic and ``-value``).  A registry that gives no descriptors
    (``format=serialized``), but text, needs the package grpcio-tools.  ``registry`` and ``options``: see ``Avro``.
    """

    name = "protobuf"

    def __init__(
        self, registry: Any, *, subject: str | None = None, options: dict[str, Any] | None = None
    ) -> None:
        self._registry, self._subject, self._options = registry, subject, options

    def reader(
        self, schema: Schema, place: str, unreadable: Callable[..., None], metadata: Metadata
    ) -> MessageFormat:
        """Return the format of a source."""
        library("google.protobuf.descriptor_pool", "protobuf", place)
        return _ProtobufMessages(schema, place, unreadable, self._schemas(place), metadata)

    async def writer(self, fields: pa.Schema, topic: str, place: str) -> PayloadsOf:
        """Register the schema of some columns, and return the function that makes messages of rows."""
        file = protobuf_file(fields, topic, place)
        text = b64encode(file.SerializeToString()).decode()
        number = await self._schemas(place).register(self._subject or f"{topic}-value", text, "PROTOBUF")
        message_type = message_types(text, {}, place).message_types_by_name[file.message_type[0].name]
        make = library("google.protobuf.message_factory", "protobuf", place).GetMessageClass(message_type)

        def payloads_of(rows: pa.RecordBatch) -> list[bytes]:
            messages = [make() for _ in range(rows.num_rows)]
            fill(messages, rows, place)
            return [with_head(number, _FIRST + each.SerializeToString()) for each in messages]

        return payloads_of

    def _schemas(self, place: str) -> Schemas:
        return Schemas(
            self._registry, "protobuf", place, self._options, form="serialized", made=as_descriptors
        )


class _ProtobufMessages(RegistryMessages):
    @cached_property
    def _types(self) -> dict[tuple[int, ...], _Type]:
        return {}

    def _schema_of(self, text: str, kind: str, references: dict[str, str]) -> Any:
        if kind != "PROTOBUF":
            msg = f"it is of {kind}, not Protobuf"
            raise ValueError(msg)
        return message_types(text, references, self.place)

    def _rows(self, schema: Any, payloads: list[bytes]) -> Rows:
        rows, reasons = list[dict[str, Any]](), list[str | None]()
        for payload in payloads:
            try:
                rows.append(self._row(schema, payload))
                reasons.append(None)
            except ValueError as error:
                rows.append({})
                reasons.append(str(error))
        columns = {}
        for field in self.columns:
            cells = [row.get(field.name) for row in rows]
            if pa.types.is_nested(field.type):
                columns[field.name] = nested_column(cells, field, lambda path: None, as_is, reasons)
                continue
            columns[field.name], lost = of_values(cells, field.type)
            for at in () if lost is None else np.flatnonzero(lost.to_numpy(zero_copy_only=False)).tolist():
                reasons[at] = reasons[at] or misread(field.name, cells[at], field.type)
        return columns, reasons

    def _row(self, schema: Any, payload: bytes) -> dict[str, Any]:
        """Return the declared fields of a message; raises ``ValueError`` if it is none of its schema."""
        path, at = indexes_of(payload)
        if (made := self._types.get((id(schema), *path))) is None:
            made = self._types[(id(schema), *path)] = self._type_of(schema, path)
        try:
            message = made.parse(payload[at:])
        except made.broken as error:
            msg = f"the content is not of its schema: {error}"[:200]
            raise ValueError(msg) from error
        for name in made.others:
            self.unknown.add(name, 1)
        return {name: value_of(message, field, kind) for name, field, kind in made.fields}

    def _type_of(self, schema: Any, path: list[int]) -> _Type:
        errors = library("google.protobuf.message", "protobuf", self.place)
        message_type = _type_at(schema, path)
        make = library("google.protobuf.message_factory", "protobuf", self.place).GetMessageClass(
            message_type
        )
        there = message_type.fields_by_name
        columns = [(each.name, there[each.name], each.type) for each in self.columns if each.name in there]
        others = [field.name for field in message_type.fields if field.name not in self.columns.names]
        return _Type(make.FromString, errors.DecodeError, columns, others)


class _Type(NamedTuple):
    """A message type: the function that parses it, the error of that, the fields that are columns, and other fields."""

    parse: Callable[[bytes], Any]
    broken: type[Exception]
    fields: list[tuple[str, Any, pa.DataType]]
    others: list[str]


def _type_at(schema: Any, path: list[int]) -> Any:
    """Return the message type at a path of numbers."""
    types, message_type = list(schema.message_types_by_name.values()), None
    for number in path:
        if not 0 <= number < len(types):
            msg = f"its schema has no message type at {path}"
            raise ValueError(msg)
        message_type = types[number]
        types = list(message_type.nested_types)
    return message_type
