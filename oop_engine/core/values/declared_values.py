"""Declared values: lists, objects and maps of a message get the fields that a nested type declares.

As for columns, a field that the type has not is left out and counted, and one that is missing is null.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa

from oop_engine.core.values.kinds import is_list
from oop_engine.core.values.python_values import of_values

__all__ = ["MisfitError", "as_is", "declared_value", "fields_besides", "misfit_of", "nested_column"]

Leaf = Callable[[Any, pa.DataType, str], Any]
"""Returns a value that is neither a list nor an object, of a declared type, at a path; raises ``MisfitError``."""
Note = Callable[[str], None]
"""Called with the path of each field that is left out."""
_SHOWN = 80


class MisfitError(ValueError):
    """A value at a path that its type has not."""

    def __init__(self, path: str, value: Any, kind: pa.DataType) -> None:
        super().__init__(f"{path}: cannot read {value!r:.{_SHOWN}} as {kind}")


def as_is(value: Any, kind: pa.DataType, path: str) -> Any:
    """Return a value as it is."""
    return value


def declared_value(value: Any, kind: pa.DataType, path: str, note: Note, leaf: Leaf) -> Any:
    """Return a value as ``of_values`` takes it for a nested type; raises ``MisfitError`` with the path of the misfit.

    >>> kind = pa.struct({"a": pa.list_(pa.int64())})
    >>> declared_value({"a": [1, 2], "b": 3}, kind, "v", print, lambda value, kind, path: value)
    v.b
    {'a': [1, 2]}
    """
    if value is None:
        return None
    types = pa.types
    if types.is_struct(kind):
        if not isinstance(value, Mapping):
            raise MisfitError(path, value, kind)
        for name in value.keys() - {field.name for field in kind}:
            note(f"{path}.{name}")
        there = [field for field in kind if field.name in value]
        if taken := [each.name for each in there if each.name in getattr(value, "twice", ())]:
            where = f"{path}.{taken[0]}"
            raise MisfitError(where, "two values", kind)
        return {
            each.name: declared_value(value[each.name], each.type, f"{path}.{each.name}", note, leaf)
            for each in there
        }
    if types.is_map(kind):
        keys, items = f"{path} (a key)", kind.item_type
        return [
            (leaf(key, kind.key_type, keys), declared_value(item, items, f"{path}[{key!r}]", note, leaf))
            for key, item in _pairs(value, kind, path)
        ]
    if is_list(kind):
        if not isinstance(value, list | tuple):
            raise MisfitError(path, value, kind)
        inner = kind.value_type
        return [declared_value(each, inner, f"{path}[{at}]", note, leaf) for at, each in enumerate(value)]
    return leaf(value, kind, path)


def _pairs(value: Any, kind: pa.DataType, path: str) -> Collection[tuple[Any, Any]]:
    """Return the pairs of a map, which may come as an object or as a list of pairs."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, list | tuple) and all(
        isinstance(each, list | tuple) and len(each) == 2 for each in value
    ):
        return [(key, item) for key, item in value]
    raise MisfitError(path, value, kind)


def nested_column(
    values: list[Any], field: pa.Field, note: Note, leaf: Leaf, reasons: list[str | None]
) -> pa.Array:
    """Return values of messages as a column of a nested type; ``reasons`` gets one for each row that has a misfit.

    O(values).
    """
    cells = list[Any]()
    for at, value in enumerate(values):
        try:
            cells.append(declared_value(value, field.type, field.name, note, leaf))
        except MisfitError as error:
            cells.append(None)
            reasons[at] = reasons[at] or str(error)
    array, lost = of_values(cells, field.type)
    for at, bad in enumerate(() if lost is None else lost.to_pylist()):
        if bad:
            reasons[at] = reasons[at] or misfit_of(cells[at], field.type, field.name)
    return array


def misfit_of(value: Any, kind: pa.DataType, path: str) -> str:
    """Return the reason why a nested type has not a value: its first part that does not fit, by its path."""
    types = pa.types
    if isinstance(value, Mapping) and types.is_struct(kind):
        parts = [(value.get(field.name), field.type, f"{path}.{field.name}") for field in kind]
    elif isinstance(value, list) and types.is_map(kind):
        parts = [(key, kind.key_type, f"{path} (a key)") for key, _ in value]
        parts += [(item, kind.item_type, f"{path}[{key!r}]") for key, item in value]
    elif isinstance(value, list) and is_list(kind):
        parts = [(each, kind.value_type, f"{path}[{at}]") for at, each in enumerate(value)]
    else:
        parts = []
    for part, inner, where in parts:
        if of_values([part], inner)[1] is not None:
            return misfit_of(part, inner, where)
    return str(MisfitError(path, value, kind))


def fields_besides(given: pa.DataType, kind: pa.DataType, path: str) -> list[str]:
    """Return the paths of the fields that a nested type has besides those of ``kind``.

    >>> fields_besides(pa.struct({"a": pa.int8(), "b": pa.int8()}), pa.struct({"a": pa.int64()}), "v")
    ['v.b']
    """
    types = pa.types
    if types.is_struct(given) and types.is_struct(kind):
        known = {field.name: field.type for field in kind}
        others = [f"{path}.{each.name}" for each in given if each.name not in known]
        for each in given:
            if each.name in known:
                others += fields_besides(each.type, known[each.name], f"{path}.{each.name}")
        return others
    if types.is_map(given) and types.is_map(kind):
        return fields_besides(given.item_type, kind.item_type, path)
    if is_list(given) and is_list(kind):
        return fields_besides(given.value_type, kind.value_type, path)
    return []
