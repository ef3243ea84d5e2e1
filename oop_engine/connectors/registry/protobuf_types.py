"""Protobuf types: the message type for rows of Arrow, and its messages.

Types that Protobuf has not are texts, in the form in which all sources read them: days, times, moments without a zone,
decimals.  A field may be null (``optional``); a list, and a value in one, may not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from oop_engine.connectors.library import library
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.values.rfc3339 import moment_texts

__all__ = ["fill", "protobuf_file"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OPTIONAL, _REPEATED = 1, 3
_MESSAGE = 11
_TIMESTAMP = ".google.protobuf.Timestamp"
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
Cells = list[Any]


def protobuf_file(fields: pa.Schema, name: str, place: str) -> Any:
    """Return the descriptor of a file with one message type, of rows of some columns.

    Raises ``GraphError`` in the name of ``place`` for a column that Protobuf has no type or no name for.
    """
    made = re.sub(r"\W", "_", name, flags=re.ASCII)
    made = made if _NAME.match(made) else f"_{made}"
    file = library("google.protobuf.descriptor_pb2", "protobuf", place).FileDescriptorProto(
        name=f"{made}.proto", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    _add_fields(file.message_type.add(name=made), list(fields), f".{made}", place)
    return file


def _add_fields(message: Any, fields: list[pa.Field], path: str, place: str) -> None:
    optional = []
    for number, field in enumerate(fields, 1):
        if not _NAME.match(field.name):
            msg = f"{place}: column {field.name!r}: a name of Protobuf has letters, digits and _ alone: "
            raise GraphError(msg + "rename it (Project)")
        added = message.field.add(name=field.name, number=number, label=_OPTIONAL)
        _declare(added, message, field.type, f"{path}.", f"{place}: column {field.name!r}")
        if added.label == _OPTIONAL and added.type != _MESSAGE:
            added.proto3_optional = True
            optional.append(added)
    for added in optional:  # the oneofs of optional fields come behind all others
        added.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{added.name}")


def _declare(added: Any, message: Any, kind: pa.DataType, path: str, place: str) -> None:
    """Set the type of a field, with the message types that it needs."""
    types = pa.types
    if types.is_dictionary(kind):
        _declare(added, message, kind.value_type, path, place)
    elif types.is_map(kind):
        added.label, added.type = _REPEATED, _MESSAGE
        entry = f"{''.join(part.title() for part in added.name.split('_'))}Entry"
        added.type_name = path + entry
        inner = message.nested_type.add(name=entry)
        inner.options.map_entry = True
        for number, (name, part_type) in enumerate((("key", kind.key_type), ("value", kind.item_type)), 1):
            _declare_scalar(
                inner.field.add(name=name, number=number, label=_OPTIONAL),
                inner,
                part_type,
                path + entry + ".",
                place,
            )
    elif types.is_nested(kind) and not types.is_struct(kind):
        added.label = _REPEATED
        _declare_scalar(added, message, kind.value_type, path, place)
    else:
        _declare_scalar(added, message, kind, path, place)


def _declare_scalar(added: Any, message: Any, kind: pa.DataType, path: str, place: str) -> None:
    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_struct(kind):
        name = f"Of_{added.name}"
        added.type, added.type_name = _MESSAGE, path + name
        _add_fields(message.nested_type.add(name=name), list(kind), path + name, place)
    elif types.is_timestamp(kind) and kind.tz:
        added.type, added.type_name = _MESSAGE, _TIMESTAMP
    elif (number := _number(kind)) is None:
        msg = f"{place} is {kind}, which Protobuf has no type for: cast it in the graph, to int64 or string"
        raise GraphError(msg)
    else:
        added.type = number


def _number(kind: pa.DataType) -> int | None:
    """Return the number of the type of a field."""
    types = pa.types
    if types.is_integer(kind):
        small = kind.bit_width < 64
        return (13 if small else 4) if types.is_unsigned_integer(kind) else 5 if small else 3
    if types.is_floating(kind):
        return 1 if types.is_float64(kind) else 2
    numbers: dict[int, tuple[Callable[[pa.DataType], bool], ...]] = {
        8: (types.is_boolean,),
        9: (
            types.is_string,
            types.is_large_string,
            types.is_date,
            types.is_time,
            types.is_timestamp,
            types.is_decimal,
        ),
        12: (types.is_binary, types.is_large_binary, types.is_fixed_size_binary),
    }
    return next((number for number, tests in numbers.items() if any(test(kind) for test in tests)), None)


def fill(messages: list[Any], rows: pa.RecordBatch, place: str) -> None:
    """Set the fields of messages, one for each row.  O(values)."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        for message, cell in zip(messages, _cells(column), strict=True):
            _set(message, name, cell, f"{place}: column {name!r}")


def _set(message: Any, name: str, cell: Any, place: str) -> None:
    """Set a field, unless the cell is null."""
    field = message.DESCRIPTOR.fields_by_name[name]
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    if field.is_repeated and (cell is None or None in (cell.values() if is_map else cell)):
        noun = f"{'a null' if cell is None else 'a null in a'} {'map' if is_map else 'list'}"
        msg = f"{place} has {noun}, which Protobuf has not: fill it in the graph, or use another format"
        raise ContractError(msg)
    if cell is None:
        return
    target = getattr(message, name)
    if is_map:
        inner = field.message_type.fields_by_name["value"].message_type
        for key, value in cell.items():
            if inner is None:
                target[key] = value
            else:
                _fill_one(target[key], value, place)
    elif field.is_repeated and field.message_type is not None:
        for each in cell:
            _fill_one(target.add(), each, place)
    elif field.is_repeated:
        target.extend(cell)
    elif field.message_type is not None:
        target.SetInParent()
        _fill_one(target, cell, place)
    else:
        setattr(message, name, cell)


def _fill_one(message: Any, cell: Any, place: str) -> None:
    if message.DESCRIPTOR.full_name == _TIMESTAMP[1:]:
        message.seconds, message.nanos = cell
        return
    for name, value in cell.items():
        _set(message, name, value, place)


def _cells(column: pa.Array) -> Cells:
    """Return values as fields are given them: moments as seconds and nanoseconds."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return _cells(column.dictionary_decode())
    if types.is_struct(kind):
        names = [field.name for field in kind]
        rows = zip(*map(_cells, column.flatten()), strict=True) if names else [()] * len(column)
        cells: Cells = [dict(zip(names, row, strict=True)) for row in rows]
        return [
            row if there else None for row, there in zip(cells, column.is_valid().to_pylist(), strict=True)
        ]
    if types.is_map(kind):
        pairs = _lists(column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
        return [None if row is None else {each["key"]: each["value"] for each in row} for row in pairs]
    if types.is_nested(kind):
        return _lists(column)
    if types.is_timestamp(kind) and kind.tz:
        unit = _UNITS[kind.unit]
        return [
            None if value is None else (value // unit, value % unit * (10**9 // unit))
            for value in column.cast(pa.int64()).to_pylist()
        ]
    if types.is_timestamp(kind):
        return list(moment_texts(column).to_pylist())
    if types.is_date(kind) or types.is_time(kind) or types.is_decimal(kind):
        return list(column.cast(pa.string()).to_pylist())
    return list(column.to_pylist())


def _lists(column: pa.Array) -> Cells:
    lengths = column.value_lengths().fill_null(0).to_pylist()
    cells, at, lists = _cells(column.flatten()), 0, list[Any]()
    for length, there in zip(lengths, column.is_valid().to_pylist(), strict=True):
        lists.append(cells[at : at + length] if there else None)
        at += length
    return lists
