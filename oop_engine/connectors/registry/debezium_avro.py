"""Debezium in Avro: envelopes whose schemas are in a schema registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from itertools import chain
from typing import Any

from oop_engine.connectors.formats.debezium_messages import DebeziumMessages
from oop_engine.connectors.library import library
from oop_engine.connectors.payload import Metadata
from oop_engine.connectors.registry.avro_types import without_times
from oop_engine.connectors.registry.schemas import Schemas
from oop_engine.connectors.registry.wire import HEAD, head_of
from oop_engine.connectors.source import Unreadable
from oop_engine.core.schema import Schema

__all__ = ["DebeziumAvro"]

_BROKEN = (EOFError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)
_LOGICAL = {
    "timestamp-millis": "io.debezium.time.Timestamp", "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "date": "io.debezium.time.Date", "time-millis": "io.debezium.time.Time",
    "time-micros": "io.debezium.time.MicroTime",
}  # fmt: skip


class DebeziumAvro(DebeziumMessages):
    """Envelopes of Debezium in Avro; the types of fields are those that Debezium names in the schema."""

    by_lines = False
    waits = True

    def __init__(
        self, schema: Schema, place: str, unreadable: Unreadable, schemas: Schemas, metadata: Metadata
    ) -> None:
        super().__init__(schema, place, unreadable, metadata)
        self._schemas = schemas
        self._made = dict[int, Any]()

    async def ready(self, data: Any, *, once: bool = False) -> None:
        """Fetch the schemas that some data need; ``once``: do not wait for a registry that is away."""
        await self._schemas.fetch([data] if isinstance(data, bytes) else data, once=once)

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return a list of all payloads."""
        return list(chain.from_iterable([p] if isinstance(p, bytes) else p for p in pieces))

    def _split(self, data: Any) -> list[bytes]:
        return [data] if isinstance(data, bytes) else list(data)

    def _parsed(self, payload: bytes) -> Any:
        """Return the envelope of a payload and the description of its fields, or the reason why there is none."""
        if isinstance(number := head_of(payload), str):
            return number
        if (given := self._schemas.get(number)) is None:
            return f"the schema registry has no schema {number}"
        if isinstance(given, str):
            return given
        fastavro = library("fastavro", "avro", self.place)
        content = BytesIO(payload)
        content.seek(HEAD)
        try:
            if number not in self._made:
                self._made[number] = _read(fastavro, given)
            parsed, about = self._made[number]
            return {"schema": about, "payload": fastavro.schemaless_reader(content, parsed)}
        except _BROKEN as error:
            return f"the content is not of its schema: {str(error) or type(error).__name__}"[:200]


def _read(fastavro: Any, given: tuple[str, str, Mapping[str, str]]) -> tuple[Any, Any]:
    """Return a schema as fastavro has it, and the description of its rows as Debezium's JSON has it."""
    text, kind, references = given
    if kind not in ("AVRO", None):
        msg = f"its schema is of {kind}, not Avro"
        raise ValueError(msg)
    named: dict[str, Any] = {}
    try:
        for each in references.values():
            fastavro.parse_schema(without_times(json.loads(each)), named)
        parsed = fastavro.parse_schema(without_times(json.loads(text)), named)
    except Exception as error:  # of any class: those of fastavro have no base of their own
        msg = f"its schema cannot be read: {error}"
        raise ValueError(msg) from error
    records = _records(json.loads(text), {})
    fields = json.loads(text).get("fields", [])
    parts = [{"field": part["name"], "fields": _described(part["type"], records)} for part in fields]
    return parsed, {"fields": parts}


def _records(schema: Any, records: dict[str, Any]) -> dict[str, Any]:
    """Return the records in a schema by their names: that of ``after`` is the one that ``before`` defines."""
    if isinstance(schema, list):
        for each in schema:
            _records(each, records)
    elif isinstance(schema, dict):
        if schema.get("type") == "record":
            name = schema["name"]
            records[name] = records[f"{schema.get('namespace', '')}.{name}".lstrip(".")] = schema
        for each in [
            *schema.get("fields", []),
            schema.get("type"),
            schema.get("items"),
            schema.get("values"),
        ]:
            _records(each, records)
    return records


def _described(schema: Any, records: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the descriptions of the fields of a record, or of one that may be null."""
    kinds = [each for each in (schema if isinstance(schema, list) else [schema]) if each != "null"]
    record = kinds[0] if kinds else None
    if isinstance(record, str):
        record = records.get(record.rpartition(".")[2])
    if not isinstance(record, dict) or record.get("type") != "record":
        return []
    return [{"field": each["name"], "name": _name_of(each["type"])} for each in record["fields"]]


def _name_of(schema: Any) -> str | None:
    """Return the name of the type of a field, as Debezium has it."""
    for each in schema if isinstance(schema, list) else [schema]:
        if isinstance(each, dict):
            name = each.get("connect.name") or _LOGICAL.get(each.get("logicalType", ""))
            return None if name is None else str(name)
    return None
