"""Frames: the columns of tables, frames and readers, by their names.

A cell of a frame of pandas may be any object of Python, and Arrow makes one type of them: of a day and a moment two
days, of moments with and without a zone moments without one.  So columns of pandas are given as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa

from oop_engine.core.errors import ContractError
from oop_engine.core.values.array_likes import as_arrow, objects
from oop_engine.core.values.arrow_data import check_unit, record_batches
from oop_engine.core.values.python_values import natural

_INDEX = "index"
"""The column that pandas makes of an index without a name."""

__all__ = ["cells_of", "columns_of", "part", "typed_batches", "typed_column"]


def columns_of(
    data: Any, names: Collection[str], time: tuple[str, str], place: str
) -> Iterator[Mapping[Any, Any]]:
    """Yield the columns of Arrow data or a frame, as many rows at once as it gives.

    ``names`` are those that are read, ``time`` the progressing attribute and its unit.  Raises ``ContractError`` in the
    name of ``place`` if two columns have a name that is read, if times are in another unit, or if Arrow cannot read
    the data.
    """
    if _is_pandas(data):
        inside = any(name in names for name in data.index.names) or (_INDEX in names and _is_of_moments(data))
        named = data.reset_index() if inside else data
        _check_once(list(named.columns), names, place)
        yield {name: named.iloc[:, at] for at, name in enumerate(named.columns)}
        return
    try:
        for batch in record_batches(data):
            check_unit(fields := batch.schema, *time, place)
            headers = fields.names
            _check_once(headers, names, place)
            yield dict(zip(headers, batch.columns, strict=True))
    except (pa.ArrowException, TypeError, ValueError) as error:
        msg = f"{place}: Arrow cannot read a {type(data).__name__} as a table: {error}"
        raise ContractError(msg) from error


def part(column: Any, start: int, stop: int) -> Any:
    """Return some values of a column, by their places."""
    return column.iloc[start:stop] if hasattr(column, "iloc") else column[start:stop]


def typed_batches(data: Any) -> list[pa.RecordBatch]:
    """Return all rows of Arrow data or a frame as batches; raises ``TypeError`` for a column of several types."""
    if not _is_pandas(data):
        return list(record_batches(data))
    arrays, named = [], _with_index(data)
    for at, name in enumerate(named.columns):
        try:
            arrays.append(typed_column(named.iloc[:, at]))
        except (pa.ArrowException, TypeError, ValueError) as error:
            msg = f"column {name!r}: {error}"
            raise TypeError(msg) from error
    return list(pa.table(arrays, [str(name) for name in named.columns]).to_batches())


def typed_column(column: Any) -> pa.Array:
    """Return a column of any library in the type that it has; raises ``TypeError`` for one of several types."""
    array = as_arrow(column)
    whole = natural(objects(column)) if array is None else array
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def cells_of(data: Any) -> dict[str, list[Any]] | None:
    """Return the columns of a frame of pandas as objects, whatever types they have; None: it is none."""
    if not _is_pandas(data):
        return None
    named = _with_index(data)
    return {str(name): objects(named.iloc[:, at]) for at, name in enumerate(named.columns)}


def _with_index(data: Any) -> Any:
    """Return a frame with its index as columns, if that has a name, or is of moments: then ``index``."""
    named = any(name is not None for name in data.index.names)
    return data.reset_index() if named or _is_of_moments(data) else data


def _is_of_moments(data: Any) -> bool:
    return getattr(getattr(data.index, "dtype", None), "kind", "") == "M" and _INDEX not in data.columns


def _is_pandas(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "reset_index") and getattr(data, "ndim", 1) == 2


def _check_once(headers: list[Any], names: Collection[str], place: str) -> None:
    if len(set(headers)) == len(headers):
        return
    for name in names:
        if (times := headers.count(name)) > 1:
            msg = f"{place}: there must be one column {name!r}; got {times}: rename or drop the others"
            raise ContractError(msg)
