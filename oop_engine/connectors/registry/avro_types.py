"""Avro types: the type of Arrow that has the values of a schema of Avro, and the schema of Avro for columns of Arrow.

Moments, times and days are read as their numbers, in the unit of the schema: so they are exact, also those for which
Python has no date.  Source: the specification of Apache Avro 1.12, "Logical Types".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import pyarrow as pa

from oop_engine.core.errors import GraphError

__all__ = ["arrow_type", "avro_record", "read_uuids", "without_times"]

_PLAIN = {
    "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(), "enum": pa.string(),
}  # fmt: skip
_WORDS = {"ms": "milli", "us": "micro", "ns": "nano"}
_TIMES = {
    "date": pa.date32(), "time-millis": pa.time32("ms"), "time-micros": pa.time64("us"),
    **{f"timestamp-{word}s": pa.timestamp(unit, "UTC") for unit, word in _WORDS.items()},
    **{f"local-timestamp-{word}s": pa.timestamp(unit) for unit, word in _WORDS.items()},
}  # fmt: skip
_UNITS = {"s": "milli", **_WORDS}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_UUID_OF_BYTES = "oop-engine-uuid"  # by which fastavro reads a UUID of 16 bytes as a text
_DIGITS = 76
_DEEPEST = 20
_UUID_BYTES = 16


def arrow_type(declared: Any, named: Mapping[str, Any], depth: int = 0) -> pa.DataType | None:
    """Return the type of the values of a schema; None: they have none in common (a union), or it contains itself.

    ``named``: the schemas with names that were defined before.

    >>> arrow_type(["null", {"type": "long", "logicalType": "timestamp-millis"}], {})
    TimestampType(timestamp[ms, tz=UTC])
    >>> arrow_type(["string", "long"], {}) is None
    True
    """
    if depth > _DEEPEST:
        return None
    if isinstance(declared, list):
        kinds = [each for each in declared if each != "null"]
        return arrow_type(kinds[0], named, depth + 1) if len(kinds) == 1 else _of_none(kinds)
    if isinstance(declared, str):
        return (
            _PLAIN[declared]
            if declared in _PLAIN
            else arrow_type(named[declared], named, depth + 1)
            if declared in named
            else None
        )
    if (logical := _logical(declared)) is not None:
        return logical
    match declared["type"]:
        case "record" | "error":
            fields = [
                (each["name"], arrow_type(each["type"], named, depth + 1)) for each in declared["fields"]
            ]
            return None if any(kind is None for _, kind in fields) else pa.struct(fields)
        case "array":
            kind = arrow_type(declared["items"], named, depth + 1)
            return None if kind is None else pa.list_(kind)
        case "map":
            kind = arrow_type(declared["values"], named, depth + 1)
            return None if kind is None else pa.map_(pa.string(), kind)
        case "fixed":
            return pa.binary(declared["size"])
        case other:
            return arrow_type(other, named, depth + 1)


def _of_none(kinds: list[Any]) -> pa.DataType | None:
    return None if kinds else pa.null()


def _logical(declared: Mapping[str, Any]) -> pa.DataType | None:
    """Return the type of a logical type, where it is one on its type."""
    match declared.get("logicalType"), declared["type"]:
        case "decimal", "bytes" | "fixed" if (
            0 <= declared.get("scale", 0) <= declared.get("precision", 0) <= _DIGITS
        ):
            return pa.decimal256(declared["precision"], declared.get("scale", 0))
        case ((("date" | "time-millis") as name), "int"):
            return _TIMES[name]
        case "uuid", "string" | "fixed" if _is_uuid(declared):
            return pa.string()
        case name, "long" if name in _TIMES and name not in ("date", "time-millis"):
            return _TIMES[name]
    return None


def _is_uuid(declared: Mapping[str, Any]) -> bool:
    return declared["type"] == "string" or (
        declared["type"] == "fixed" and declared.get("size") == _UUID_BYTES
    )


def without_times(declared: Any, times: Collection[str] = frozenset(_TIMES)) -> Any:
    """Return a schema in which moments, times and days (``times``: these logical types) are numbers, UUIDs texts."""
    if isinstance(declared, list):
        return [without_times(each, times) for each in declared]
    if not isinstance(declared, dict):
        return declared
    plain = {name: without_times(each, times) if name in _INNER else each for name, each in declared.items()}
    logical = plain.get("logicalType")
    if logical == "uuid" and plain.get("type") == "fixed" and _is_uuid(plain):
        plain["logicalType"] = _UUID_OF_BYTES
    elif logical == "uuid" or logical in times:
        del plain["logicalType"]
    if "fields" in plain:
        plain["fields"] = [{**each, "type": without_times(each["type"], times)} for each in plain["fields"]]
    return plain


def read_uuids(fastavro: Any) -> None:
    """Make ``fastavro`` read UUIDs of 16 bytes in schemas of ``without_times``: it reads those of texts alone."""
    fastavro.read.LOGICAL_READERS[f"fixed-{_UUID_OF_BYTES}"] = lambda data, *_: str(UUID(bytes=data))


_INNER = ("type", "items", "values")


def avro_record(fields: pa.Schema, name: str, place: str) -> dict[str, Any]:
    """Return the schema of rows of some columns, a record called ``name``.

    Raises ``GraphError`` in the name of ``place`` for a column that Avro has no type or no name for.

    >>> avro_record(pa.schema({"n": pa.int64()}), "results", "sink")["fields"]
    [{'name': 'n', 'type': ['null', 'long'], 'default': None}]
    """
    made = re.sub(r"\W", "_", name, flags=re.ASCII)
    return _record(fields, made if _NAME.match(made) else f"_{made}", place)


def _record(fields: Any, name: str, place: str) -> dict[str, Any]:
    declared = []
    for field in fields:
        if not _NAME.match(field.name):
            msg = f"{place}: column {field.name!r}: a name of Avro has letters, digits and _ alone: rename it (Project)"
            raise GraphError(msg)
        kind = _avro(field.type, f"{name}_{field.name}", f"{place}: column {field.name!r}")
        declared.append(
            {"name": field.name, "type": ["null", kind], "default": None}
            if field.nullable and kind != "null"
            else {"name": field.name, "type": kind}
        )
    return {"type": "record", "name": name, "fields": declared}


def _avro(kind: pa.DataType, name: str, place: str) -> Any:
    """Return the type of Avro that has the values of a type of Arrow."""
    types = pa.types
    if types.is_dictionary(kind):
        return _avro(kind.value_type, name, place)
    if types.is_struct(kind):
        return _record(list(kind), name, place)
    if types.is_map(kind) and (types.is_string(kind.key_type) or types.is_large_string(kind.key_type)):
        return {"type": "map", "values": ["null", _avro(kind.item_type, name, place)]}
    if types.is_map(kind):
        pairs = [pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)]
        return {"type": "array", "items": _record(pairs, name, place)}
    if types.is_nested(kind):
        return {"type": "array", "items": ["null", _avro(kind.value_type, name, place)]}
    if (scalar := _scalar(kind)) is None:
        msg = f"{place} is {kind}, which Avro has no type for: cast it in the graph, to int64 or string"
        raise GraphError(msg)
    return scalar


def _scalar(kind: pa.DataType) -> Any:
    types = pa.types
    if types.is_timestamp(kind):
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-{_UNITS[kind.unit]}s"}
    if types.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if types.is_time32(kind):
        return {"type": "int", "logicalType": "time-millis"}
    if types.is_time64(kind) and kind.unit == "us":
        return {"type": "long", "logicalType": "time-micros"}
    if types.is_decimal(kind) and kind.scale >= 0:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if types.is_uint64(kind):  # beyond the numbers of Avro
        return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
    if types.is_integer(kind):
        return "int" if kind.bit_width < 32 or types.is_int32(kind) else "long"
    if types.is_floating(kind):
        return "double" if types.is_float64(kind) else "float"
    tests = {
        "boolean": (types.is_boolean,), "null": (types.is_null,),
        "string": (types.is_string, types.is_large_string),
        "bytes": (types.is_binary, types.is_large_binary, types.is_fixed_size_binary),
    }  # fmt: skip
    return next((name for name, kinds in tests.items() if any(test(kind) for test in kinds)), None)
