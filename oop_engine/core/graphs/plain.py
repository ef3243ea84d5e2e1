"""Plain: the parameters of operators as plain data, to be kept, compared and sent as JSON; never by pickle.

An object of this library is ``{"kind": its class, "with": its arguments}``, as its constructor took them; a schema has
its columns with their types, an expression its text.  Where a text is not enough (nested types, expressions) Arrow's
own bytes are beside it, in base64, and these are read back.  A function has no plain form.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.arguments import ARGUMENTS
from oop_engine.core.close_names import SHELVES, did_you_mean
from oop_engine.core.errors import GraphError, UsageError
from oop_engine.core.graphs.stream import Stream
from oop_engine.core.operator import Operator
from oop_engine.core.schema import Schema
from oop_engine.core.values.type_names import type_named

__all__ = ["nodes_of_plain", "of_plain", "plain", "plain_nodes"]

Kinds = Mapping[str, type[Any]]
_TOP = __name__.partition(".")[0]
_OWN: dict[Any, Any] = {"source": Schema, "operator": Operator, "sink": type(None)}


def plain(value: Any, place: str) -> Any:
    """Return a value as dictionaries, lists, texts, numbers and None.

    Raises ``GraphError`` in the name of ``place`` for functions and objects that are not of this library.

    >>> from oop_engine.operators import Tumbling
    >>> plain({"w": Tumbling("1 min")}, "example")
    {'map': [['w', {'kind': 'oop_engine.windows.Tumbling', 'with': {'range': '1 min', 'origin': 0}}]]}
    """
    match value:
        case Enum():
            return {"kind": _name_of(value, place), "member": value.name}
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": str(value)}
        case np.timedelta64() | np.datetime64():
            return {"numpy": [value.dtype.str, int(value.astype(np.int64))]}
        case np.generic():
            return plain(value.item(), place)
        case timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        case datetime():
            return {"datetime": value.isoformat()}
        case bytes():
            return {"bytes": _base64(value)}
        case list() | tuple():
            return [plain(item, place) for item in value]
        case Set():
            return {"set": sorted((plain(member, place) for member in value), key=repr)}
        case Mapping():
            return {"map": [[plain(key, place), plain(item, place)] for key, item in value.items()]}
        case Schema():
            return {"schema": _schema(value)}
        case pc.Expression():
            return {"expression": str(value), "arrow": _base64(value.__reduce__()[1][0])}
        case pa.DataType():
            return {"type": _type(value)}
        case pa.RecordBatch():
            return {"rows": str(value.to_pydict()), "arrow": _base64(_stream_of(value))}
    return {"kind": _name_of(value, place), "with": _arguments(value, place)}


def of_plain(value: Any, place: str, kinds: Kinds) -> Any:
    """Return the value of which ``plain`` made this; ``kinds`` are classes of one's own, by name.

    Only classes of this library and of ``kinds`` are made.  Raises ``GraphError`` in the name of ``place`` for others,
    and for data that ``plain`` does not make.

    >>> from oop_engine.operators import Tumbling
    >>> of_plain(plain(Tumbling("1 min"), "example"), "example", {})
    Tumbling(range='1 min', origin=0)
    """
    if not isinstance(value, dict):
        return tuple(of_plain(item, place, kinds) for item in value) if isinstance(value, list) else value
    try:
        return _read(value, place, kinds)
    except (KeyError, TypeError, ValueError, pa.ArrowException, UsageError) as error:
        msg = f"{place}: {value!r:.80} is not the plain form of a parameter: {error}"
        raise GraphError(msg) from error


def plain_nodes(graph: str, nodes: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the nodes of a graph as plain data.  Raises ``GraphError``, with node and parameter, as ``plain`` does."""
    data = []
    for node in nodes:
        entry: dict[str, Any] = {"name": node.name, "node": node.kind}
        if node.inputs:
            entry["inputs"] = [[stream.node, stream.port] for stream in node.inputs]
        if (own := node.schema or node.operator) is not None:
            entry["is"] = plain(own, f"graph {graph!r}, node {node.name!r}")
        data.append(entry)
    return data


def nodes_of_plain(data: Any, kinds: Kinds) -> Iterator[tuple[str, Any, tuple[Stream, ...], Any]]:
    """Yield the name, kind, inputs, and schema or operator of each node.  Raises ``GraphError`` for other data."""
    try:
        graph, nodes = data["graph"], data["nodes"]
        for node in nodes:
            name, kind = str(node["name"]), node["node"]
            inputs = tuple(Stream(str(before), str(port)) for before, port in node.get("inputs", ()))
            own = of_plain(node.get("is"), f"graph {graph!r}, node {name!r}", kinds)
            if kind not in _OWN or not isinstance(own, _OWN[kind]):
                msg = f"node {name!r} is {kind!r:.20} with {own!r:.60}"
                raise ValueError(msg)
            yield name, kind, inputs, own
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        msg = f"Graph.of_plain: these are not the data of a graph: {type(error).__name__} {error}"
        raise GraphError(msg) from error


def _read(value: Any, place: str, kinds: Kinds) -> Any:
    match value:
        case {"kind": str(name), "member": str(member)}:
            return _class_of(name, place, kinds)[member]
        case {"kind": str(name), "with": {**given}}:
            return _made(
                _class_of(name, place, kinds), {str(k): of_plain(v, place, kinds) for k, v in given.items()}
            )
        case {"map": [*pairs]}:
            return {of_plain(k, place, kinds): of_plain(item, place, kinds) for k, item in pairs}
        case {"set": [*members]}:
            return frozenset(of_plain(member, place, kinds) for member in members)
        case {"schema": {**given}}:
            return _schema_of(dict(given))
        case {"expression": str(), "arrow": str(data)}:
            return pc.Expression._deserialize(pa.py_buffer(base64.b64decode(data, validate=True)))
        case {"type": {**given}}:
            return _type_of(given)
        case {"rows": str(), "arrow": str(data)}:
            return pa.ipc.open_stream(base64.b64decode(data, validate=True)).read_next_batch()
        case {"float": str(text)}:
            return float(text)
        case {"numpy": [str(kind), int(units)]}:
            return np.array([units]).astype(kind)[0]
        case {"timedelta": [int(days), int(seconds), int(microseconds)]}:
            return timedelta(days, seconds, microseconds)
        case {"datetime": str(text)}:
            return datetime.fromisoformat(text)
        case {"bytes": str(data)}:
            return base64.b64decode(data, validate=True)
    msg = f"there is no form with {', '.join(map(str, value)) or 'nothing'}"
    raise ValueError(msg)


def _arguments(value: Any, place: str) -> dict[str, Any]:
    """Return the arguments that the constructor of an object took."""
    if is_dataclass(value):
        taken_by = inspect.signature(type(value)).parameters
        given = {field.name: getattr(value, field.name) for field in fields(value) if field.name in taken_by}
    elif (taken := getattr(value, ARGUMENTS, None)) is not None:
        signature = inspect.signature(type(value).__init__)
        given = dict(list(signature.bind(value, *taken[0], **taken[1]).arguments.items())[1:])
    elif type(value).__init__ is object.__init__:
        given = {}
    else:
        raise _has_none(value, place)
    return {
        name: plain(argument, f"{place}, {name} of {type(value).__name__}")
        for name, argument in given.items()
    }


def _made(kind: type[Any], given: dict[str, Any]) -> Any:
    """Return an object of ``kind`` from the arguments by name."""
    by_place = []
    for parameter in list(inspect.signature(kind).parameters.values()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            by_place += list(given.pop(parameter.name, ()))
    return kind(*by_place, **given)


def _name_of(value: Any, place: str) -> str:
    """Return the public name of the class of a value, or, of one from elsewhere, that of the class alone."""
    if isinstance(value, Callable):  # type: ignore[arg-type]
        raise _has_none(value, place)
    kind = type(value)
    if kind.__module__.partition(".")[0] != _TOP:
        return kind.__name__
    shelves = (f"{_TOP}.{name}" for name in SHELVES)
    shelf = next((name for name in shelves if _on(name, kind.__name__) is kind), None)
    return f"{shelf}.{kind.__name__}" if shelf else kind.__name__


def _class_of(name: str, place: str, kinds: Kinds) -> Any:
    shelf, _, own = name.rpartition(".")
    cls = _on(shelf, own) if shelf else kinds.get(own)
    if isinstance(cls, type):
        return cls
    way_out = f"give a class of your own as kinds={{{name!r}: ...}}{did_you_mean(name, kinds)}"
    msg = f"{place}: there is no {name!r} in this library; {way_out}"
    raise GraphError(msg)


def _on(shelf: str, name: str) -> Any:
    """Return a public name of a shelf of this library, or None."""
    if shelf.partition(".")[0] != _TOP or shelf.count(".") != 1:
        return None
    try:
        module = importlib.import_module(shelf)
    except ImportError:
        return None
    return getattr(module, name) if name in getattr(module, "__all__", ()) else None


def _has_none(value: Any, place: str) -> GraphError:
    if isinstance(value, Callable):  # type: ignore[arg-type]
        name = getattr(value, "__qualname__", type(value).__name__)
        return GraphError(
            f"{place}: {name} is a function, and has no plain form: use an expression of pyarrow.compute"
        )
    msg = f"{place}: {value!r:.80} has no plain form: use a dataclass, or @checked_arguments on its class"
    return GraphError(msg)


def _schema(schema: Schema) -> dict[str, Any]:
    data: dict[str, Any] = {
        "columns": {field.name: str(field.type) for field in schema.fields},
        "progressing": schema.progressing,
        "unit": schema.unit,
        "change": schema.change,
    }
    if not _says_all(schema.fields):
        data["arrow"] = _base64(schema.fields.serialize())
    return data


def _schema_of(given: dict[Any, Any]) -> Schema:
    if "arrow" in given:
        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(given["arrow"], validate=True)))
    else:
        columns = pa.schema([(name, type_named(kind)) for name, kind in given["columns"].items()])
    return Schema(columns, given["progressing"], given["unit"], given["change"])


def _says_all(columns: pa.Schema) -> bool:
    """Return whether the texts of types are enough to make the same columns."""
    try:
        again = pa.schema([(field.name, type_named(str(field.type))) for field in columns])
    except UsageError:
        return False
    return bool(again.equals(columns, check_metadata=True))


def _type(kind: pa.DataType) -> dict[str, str]:
    columns = pa.schema([("", kind)])
    text = {"name": str(kind)}
    return text if _says_all(columns) else {**text, "arrow": _base64(columns.serialize())}


def _type_of(given: dict[Any, Any]) -> pa.DataType:
    if "arrow" not in given:
        return type_named(given["name"])
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(given["arrow"], validate=True))).field(0).type


def _stream_of(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def _base64(data: Any) -> str:
    return base64.b64encode(bytes(data)).decode()
