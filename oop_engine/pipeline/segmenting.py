"""The files that Spark wrote become numbered segments, a folder for each source, and an index of them all."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from oop_engine.core.errors import UsageError
from oop_engine.core.schema import Schema
from oop_engine.core.units import TIME_UNITS
from oop_engine.pipeline.declaration import SPARK_TYPES, Declaration
from oop_engine.pipeline.inputs import ARROW_TYPES
from oop_engine.pipeline.parse import SOURCE, SOURCE_PARTS
from oop_engine.pipeline.segmented import Segmented, segment_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["MOST_SOURCES", "collect_segments", "open_segments", "source_names", "stream_schema"]

MOST_SOURCES = 256

_INDEX = "index.json"
_PART = re.compile(r"part-(\d+)-")
_ENDED = "_SUCCESS"
_BY_SPARK = {spark: ARROW_TYPES[name] for name, spark in SPARK_TYPES.items()}


def stream_schema(declaration: Declaration, rows: DataFrame) -> Schema:
    """Return the schema of the stream; raises ``UsageError`` for a type that no stream can have."""
    kinds = dict(rows.dtypes)
    columns = {name: _arrow(declaration, name, kinds[name]) for name in declaration.stream}
    time = columns[declaration.time]
    if declaration.arrival is not None:
        arrival = _arrow(declaration, declaration.arrival, kinds[declaration.arrival])
        if not (_is_time(arrival) and pa.types.is_timestamp(arrival) == pa.types.is_timestamp(time)):
            types = f"{kinds[declaration.time]} and {kinds[declaration.arrival]}"
            msg = (
                f"{declaration.path}: time and arrival must both be timestamps, or both integers; got {types}"
            )
            raise UsageError(msg)
    if not _is_time(time) or (pa.types.is_integer(time) and not declaration.unit):
        time = f"{declaration.time!r} is {kinds[declaration.time]}"
        msg = f"{declaration.path}: time {time}: it must be a timestamp, or an integer with a unit"
        raise UsageError(msg)
    if pa.types.is_timestamp(time):
        columns[declaration.time] = pa.timestamp(declaration.unit or "us", "UTC")
    return Schema(columns, declaration.time, declaration.unit)


def _arrow(declaration: Declaration, name: str, kind: str) -> pa.DataType:
    if kind not in _BY_SPARK:
        msg = f"{declaration.path}: {name!r} is {kind}: cast it to one of {', '.join(_BY_SPARK)}"
        raise UsageError(msg)
    return _BY_SPARK[kind]


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_integer(kind))


def source_names(values: list[str]) -> dict[str, str]:
    """Return names that nodes of a graph can have, by the values that make a source.

    Raises ``UsageError`` if two values would have the same name, or there are too many.
    """
    names = {value: re.sub(r"[^\w-]", "_", value.replace(SOURCE_PARTS, "-")) for value in sorted(values)}
    if len(names) > MOST_SOURCES:
        msg = f"there are {len(names)} sources, {MOST_SOURCES} at most: name their column in by, as a group, instead"
        raise UsageError(msg)
    for value, name in names.items():
        if list(names.values()).count(name) > 1:
            msg = f"source {value!r}: another source is named {name!r} too: compute a column that distinguishes them"
            raise UsageError(msg)
    return names


def collect_segments(staged: Path, folder: Path, schema: Schema, arrival: str | None) -> dict[str, Any]:
    """Move the files of Spark to ``folder`` and write the index; return rows and bytes by source."""
    parts = {path: unquote(path.parent.name.partition("=")[2]) for path in staged.glob(f"{SOURCE}=*/part-*")}
    names = source_names(list(set(parts.values())))
    ids = {path: int(match[1]) for path in parts if (match := _PART.match(path.name))}
    numbers = {part: number for number, part in enumerate(sorted(set(ids.values())))}
    clocks: list[list[int] | None] = [None] * len(numbers)
    totals = {name: {"rows": 0, "bytes": 0, "slices": 0} for name in names.values()}
    for path, value in sorted(parts.items()):
        number, name = numbers[ids[path]], names[value]
        (folder / name).mkdir(parents=True, exist_ok=True)
        meta = pq.read_metadata(path)
        if arrival is not None:
            clocks[number] = _joined(clocks[number], _span(meta, arrival, schema))
        for figure, more in (("rows", meta.num_rows), ("bytes", path.stat().st_size), ("slices", 1)):
            totals[name][figure] += more
        path.rename(folder / name / segment_name(number))
    for name in totals:
        (folder / name / _ENDED).touch()
    index = {
        "sources": totals,
        "clocks": _running(clocks),
        "fields": base64.b64encode(schema.fields.serialize()).decode(),
        "time": schema.progressing,
        "unit": schema.unit,
        "arrival": arrival,
    }
    (folder / _INDEX).write_text(json.dumps(index, indent=1))
    return {"sources": totals, "slices": len(numbers)}


def open_segments(folder: Path) -> dict[str, Segmented]:
    """Return the sources that were collected in ``folder``."""
    index = json.loads((folder / _INDEX).read_text())
    fields = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(index["fields"])))
    schema = Schema(fields, index["time"], index["unit"])
    clocks = tuple(tuple(clock) if clock else None for clock in index["clocks"])
    return {
        name: Segmented(str(folder / name), schema, index["arrival"], clocks) for name in index["sources"]
    }


def _span(meta: pq.FileMetaData, column: str, schema: Schema) -> tuple[int, int]:
    """Return the least and the largest arrival of a file in the unit of the stream, by its statistics."""
    at = meta.schema.names.index(column)
    groups = [meta.row_group(group).column(at).statistics for group in range(meta.num_row_groups)]
    ends = [min(s.min for s in groups), max(s.max for s in groups)]
    if isinstance(ends[0], int):
        return ends[0], ends[1]
    micros = pa.array(ends, pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    return micros[0] * TIME_UNITS[schema.unit] // 1_000_000, micros[1] * TIME_UNITS[schema.unit] // 1_000_000


def _joined(known: list[int] | None, span: tuple[int, int]) -> list[int]:
    return [*span] if known is None else [min(known[0], span[0]), max(known[1], span[1])]


def _running(clocks: list[list[int] | None]) -> list[list[int] | None]:
    """Start each clock at the first arrival of all."""
    first = min((clock[0] for clock in clocks if clock), default=0)
    return [[first, clock[1]] if clock else None for clock in clocks]
