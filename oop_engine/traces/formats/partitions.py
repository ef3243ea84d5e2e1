"""Partitions: columns whose values are in the names of folders, as Hive and Spark write them: ``year=2026``."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from oop_engine.core.errors import TraceError
from oop_engine.core.values.arrays import converted
from oop_engine.core.values.kinds import converts

__all__ = ["is_partition", "partition_column", "partition_order", "partitions", "with_partitions"]

_NULL = "__HIVE_DEFAULT_PARTITION__"


def is_partition(name: str) -> bool:
    """Return whether the name of a folder has a column and a value."""
    column, equals, _ = name.partition("=")
    return bool(column and equals) and not name.startswith((".", "_"))


def partitions(path: Path) -> dict[str, str | None]:
    """Return the columns that the folders above a file have, with the text of their value; None: it is null.

    >>> partitions(Path("logs/year=2026/host=a%2Fb/part.csv"))
    {'year': '2026', 'host': 'a/b'}
    """
    values: dict[str, str | None] = {}
    for folder in path.parents:
        if not is_partition(folder.name):
            break
        name, _, value = folder.name.partition("=")
        values.setdefault(unquote(name), None if value == _NULL else unquote(value))
    return dict(reversed(values.items()))


def partition_column(path: Path, name: str, text: str | None, kind: pa.DataType) -> pa.Array:
    """Return one value of a partition in the type of its column; raises ``TraceError`` if it has no such value."""
    values, bad = pa.nulls(1, kind), None
    texts = pa.array([text], pa.string())
    if text is not None and converts(pa.string(), kind):
        values, bad = converted(texts, kind)
    elif text is not None:
        bad = pa.array([True])
    if bad is not None and bad[0].as_py():
        msg = f"{path}: column {name!r} of the folder {name}={text} must be {kind}; got {text!r}: declare another type"
        raise TraceError(msg)
    return values


def with_partitions(rows: pa.RecordBatch, values: dict[str, pa.Array]) -> pa.RecordBatch:
    """Return rows with one value of each partition in all of them."""
    for name, value in values.items():
        rows = rows.append_column(name, pa.repeat(value[0], rows.num_rows))
    return rows


def partition_order(name: str) -> list[tuple[str, int, str]]:
    """Return the place of a file in the order of a folder: that of names, but ``month=9`` is before ``month=10``.

    >>> sorted(["month=10/a.csv", "month=9/b.csv"], key=partition_order)
    ['month=9/b.csv', 'month=10/a.csv']
    """
    return [_place(part) for part in name.split("/")]


def _place(part: str) -> tuple[str, int, str]:
    name, equals, value = part.partition("=")
    return (name + equals, int(value), part) if equals and value.isdecimal() else (part, 0, "")
