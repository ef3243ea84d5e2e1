"""Of now: rows as they are when they come, also if their giver changes them later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oop_engine.core.values.arrow_data import is_arrow
from oop_engine.runners.feeds.kinds import READY, is_values
from oop_engine.runners.feeds.rows import by_name, is_row
from oop_engine.runners.feeds.still import still
from oop_engine.runners.feeds.tables import fields_of_array
from oop_engine.traces.trace import Trace

__all__ = ["of_now", "parts_of_now"]


def of_now(data: Any, read: Callable[[Any], Any] | None = None) -> Any:
    """Return the data that a source gives, of rows a copy; ``read`` is called with Arrow data, iterators and traces.

    A row of any class that names its values is a dictionary then, a structured array one of columns; a row of values
    alone is a list of one row, since a tuple comes back from a folder as a list.

    >>> row = {"ts": 1, "tags": ["a"]}
    >>> found = of_now(row)
    >>> row["tags"].append("b")
    >>> found, of_now((1, "a")), of_now([(1, "a"), (2, "b")])
    ({'ts': 1, 'tags': ['a']}, [[1, 'a']], [[1, 'a'], [2, 'b']])
    """
    if data.__class__ is dict or data.__class__ is bytes:
        return still(data)
    return [_one(data, read)] if _is_row_of_values(data) else _one(data, read)


def parts_of_now(
    data: Any, most: int, read: Callable[[Any], Any] | None = None
) -> Iterator[list[Any]] | None:
    """Return an iterator that makes ``of_now(data, read)`` of a long list, ``most`` rows at a time; of other data None.

    >>> [*parts_of_now([(1, "a"), (2, "b"), (3, "c")], 2)], parts_of_now([1, "a", 2.5], 2)
    ([[[1, 'a'], [2, 'b']], [[3, 'c']]], None)
    """
    if data.__class__ is not list or len(data) <= most or _is_row_of_values(data):
        return None
    return ([_one(each, read) for each in data[at : at + most]] for at in range(0, len(data), most))


def _one(data: Any, read: Callable[[Any], Any] | None) -> Any:
    """Return one thing, which may be a row of values."""
    if data.__class__ is dict:
        return still(data)
    if isinstance(data, READY):
        return data
    if is_arrow(data) or isinstance(data, Iterator | Trace):
        return data if read is None else read(data)
    if (names := fields_of_array(data)) is not None:
        return still({name: data[name] for name in names})
    if _is_row_of_values(data):
        return still([*data])
    if is_row(data):
        return still(by_name(data))
    return [_one(each, read) for each in data] if isinstance(data, list | tuple) else data


def _is_row_of_values(data: Any) -> bool:
    """Distinguish a row of values from lines or messages of bytes, of which a source may give a list."""
    return is_values(data) and not (isinstance(data, list) and isinstance(data[0], bytes))
