"""Doors of messages with a schema registry, and of fields of Redis, for the table of values in ``test_values``."""

from __future__ import annotations

import io
import json
import struct
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2

from oop_engine import Page, Schema
from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.connectors.registry.avro import Avro
from oop_engine.connectors.registry.protobuf import Protobuf
from oop_engine.connectors.registry.wire import with_head
from oop_engine.connectors.sources.redis_stream import _columns

__all__ = ["doors_of_messages"]

Door = Callable[[Schema], Any]
AVRO = {
    pa.null(): "null", pa.bool_(): "boolean", pa.int8(): "int", pa.int64(): "long", pa.float64(): "double",
    pa.float32(): "float", pa.string(): "string", pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    pa.decimal128(20, 3): {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3},
}  # fmt: skip
_FIELD = descriptor_pb2.FieldDescriptorProto
PROTOBUF = {
    pa.bool_(): _FIELD.TYPE_BOOL, pa.int8(): _FIELD.TYPE_SINT32, pa.int64(): _FIELD.TYPE_INT64,
    pa.uint64(): _FIELD.TYPE_UINT64, pa.float64(): _FIELD.TYPE_DOUBLE, pa.float32(): _FIELD.TYPE_FLOAT,
    pa.string(): _FIELD.TYPE_STRING, pa.binary(): _FIELD.TYPE_BYTES,
}  # fmt: skip


def doors_of_messages(value: Any, of: pa.DataType) -> dict[str, Door]:
    """Return the doors by which a value of a type of Arrow can come in a message, each a function of the schema."""
    found: dict[str, Door] = {}
    if of in AVRO and type(value) is not np.datetime64:
        fields = [{"name": "ts", "type": "long"}, {"name": "x", "type": AVRO[of]}]
        record = {"type": "record", "name": "Row", "fields": fields}
        written = io.BytesIO()
        plain = value.item() if isinstance(value, np.generic) else value
        fastavro.schemaless_writer(written, fastavro.parse_schema(record), {"ts": 1, "x": plain})
        avro = with_head(1, written.getvalue())
        found["Avro message"] = lambda schema: _read(Avro, json.dumps(record), "AVRO", avro, schema)
    if of in PROTOBUF:
        file = descriptor_pb2.FileDescriptorProto(name="row.proto", syntax="proto3")
        row = file.message_type.add(name="Row")
        row.field.add(name="ts", number=1, type=_FIELD.TYPE_INT64, label=1)
        row.field.add(name="x", number=2, type=PROTOBUF[of], label=1)
        text = b64encode(file.SerializeToString()).decode()
        protobuf = with_head(1, b"\0\x08\x01" + _field(value, of))
        found["Protobuf message"] = lambda schema: _read(Protobuf, text, "PROTOBUF", protobuf, schema)
    if type(value) is str:
        entry = _columns({b"ts": b"1", b"x": value.encode()})
        found["fields of Redis"] = lambda schema: _column(
            MESSAGE_FORMATS["jsonl"](schema, "source", lambda *_: None), [entry]
        )
    return found


def _read(format: Any, text: str, kind: str, payload: bytes, schema: Schema) -> Any:
    made = format("http://127.0.0.1:1").reader(schema, "source", lambda *_: None, {})
    made._schemas._known[1] = made._schemas._as_stored((text, kind, {}))
    return _column(made, [payload])


def _column(format: Any, payloads: list[bytes]) -> Any:
    pages = [each for each in format.messages(payloads) if isinstance(each, Page) and len(each)]
    return pages[0].column("x") if pages else None


def _field(value: Any, of: pa.DataType) -> bytes:
    """Return the second field of a message of Protobuf, as its encoding has it."""
    if pa.types.is_floating(of):
        return struct.pack("<Bd", 0x11, value) if of == pa.float64() else struct.pack("<Bf", 0x15, value)
    if of in (pa.string(), pa.binary()):
        data = value.encode() if isinstance(value, str) else value
        return b"\x12" + _varint(len(data)) + data
    number = int(value) * 2 if of == pa.int8() else int(value) % 2**64
    return b"\x10" + _varint(number)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
