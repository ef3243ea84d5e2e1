"""One door for values: a table of doors, types and values, each cell the value that was given or a refusal.

``right`` is the rule in plain Python; the doors are those by which a value can enter.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgpack
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oop_engine import EngineError, Graph, GroupWise, Page, Schema, open_trace, replay
from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.core.fitted import fitted
from oop_engine.runners.door import RowLane
from oop_engine.runners.inline import Inline
from oop_engine.sources import FileTail, GrowingFolder
from oop_engine.testing import GraphDriver
from tests.parts.core.registry_doors import doors_of_messages

REFUSED = "refused"
PARIS = ZoneInfo("Europe/Paris")
NOON = datetime(2024, 7, 1, 12, 30)
LATER = NOON.replace(microsecond=1)
KINDS = [
    pa.bool_(), pa.int8(), pa.uint16(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(),
    pa.decimal32(5, 2), pa.decimal128(5, 2), pa.decimal128(38, 0), pa.decimal256(60, 20),
    pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int16(), pa.int64()),
    pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s", "UTC"),
    pa.timestamp("us", "Europe/Paris"), pa.time32("s"), pa.time64("us"), pa.duration("s"), pa.duration("us"),
]  # fmt: skip
VALUES: list[tuple[Any, pa.DataType]] = [
    (None, pa.null()), (True, pa.bool_()), (False, pa.bool_()),
    *[(value, pa.int64()) for value in (0, 1, -1, 5, 300, 2**24 + 1, 2**53 + 1, 2**62, 1_719_837_000)],
    (2**63 + 1, pa.uint64()), (np.int8(7), pa.int8()), (np.uint64(2**64 - 1), pa.uint64()),
    *[(value, pa.float64()) for value in (0.0, 1.0, 3.0, 0.5, 1.5, -0.25, 1.005, 1e39, 1e300, 2.0**63, inf, nan)],
    (np.float32(0.5), pa.float32()), (np.float32(3), pa.float32()),
    *[(Decimal(value), pa.decimal128(20, 3)) for value in ("1.5", "1.005", "3.000", "999.99", "1000", "-2", "0.1")],
    *[
        (value, pa.string())
        for value in (
            "x", "", "5", "-5", "300", "3.0", "1e2", "0.5", "1.005", "9007199254740993", "1e400",
            "true", "TRUE", "1", "0", "nan", "NA", " 7 ", "2024-07-01", "2024-07-01 12:30:00", "2024-07-01T12:30:00Z",
            "18446744073709551616", "2024-07-01T12:30:00.5+02:00", "2024-07-01 12:30:00.000000001",
            "9999-12-31 00:00:00", "12:30:00", "12:30:00.5",
        )
    ],
    (b"x", pa.binary()), (b"5", pa.binary()), (b"\xff", pa.binary()),
    (date(2024, 7, 1), pa.date32()), (date(9999, 1, 1), pa.date32()),
    *[(value, pa.timestamp("us")) for value in (datetime(2024, 7, 1), NOON, LATER, datetime(9999, 1, 1))],
    *[(value.replace(tzinfo=UTC), pa.timestamp("us", "UTC")) for value in (NOON, LATER)],
    (NOON.replace(tzinfo=PARIS), pa.timestamp("us", "Europe/Paris")),
    (np.datetime64("2024-07-01T12:30", "m"), pa.timestamp("s")), (np.datetime64("2024-07-01", "D"), pa.date32()),
    (np.datetime64(1, "ns"), pa.timestamp("ns")), (np.datetime64("2024-07-01", "ns"), pa.timestamp("ns")),
    (pd.Timestamp("2024-07-01 12:30:00.000000001"), pa.timestamp("ns")),
    (pd.Timestamp("2024-07-01 12:30", tz="Europe/Paris"), pa.timestamp("ns", "Europe/Paris")),
    (time(12, 30), pa.time64("us")), (time(12, 30, 0, 5), pa.time64("us")),
    (timedelta(seconds=90), pa.duration("us")), (timedelta(microseconds=5), pa.duration("us")),
    (np.timedelta64(1, "m"), pa.duration("s")), (np.timedelta64(1500, "ns"), pa.duration("ns")),
    (pd.Timedelta(1500, "ns"), pa.duration("ns")), (pd.Timedelta("1 min"), pa.duration("ns")),
]  # fmt: skip
ALWAYS = {"list", "Arrow", "table in a service", "rows of a service", "key", "JSON message", "CSV message",
          "Avro message", "Protobuf message", "fields of Redis"}  # fmt: skip
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
UNIX = datetime(1970, 1, 1)


def right(value: Any, kind: pa.DataType) -> Any:
    """Return the value that a column of ``kind`` must have, in plain Python (times in seconds), or ``REFUSED``."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if value is None or value is pd.NaT:
        return None
    if isinstance(value, bytes):
        return value if pa.types.is_binary(kind) else right_text(value, kind)
    if isinstance(value, str):
        return right_text(value.encode(), kind)
    if isinstance(value, bool):
        return value if pa.types.is_boolean(kind) else REFUSED
    if isinstance(value, np.datetime64):
        whole = np.datetime_data(value.dtype)[0] == "D"
        since = Fraction(int(value.astype("M8[ns]").astype(np.int64)), 10**9)
        return right_day(int(since // 86_400), kind) if whole else right_moment(since, False, kind)
    if isinstance(value, np.timedelta64 | timedelta):
        return right_length(value, kind)
    if isinstance(value, datetime):
        return right_moment(*moment(value), kind)
    if isinstance(value, date):
        return right_day((value - date(1970, 1, 1)).days, kind)
    if isinstance(value, time):
        seconds = Fraction(value.hour * 3600 + value.minute * 60 + value.second) + Fraction(
            value.microsecond, 10**6
        )
        return (
            seconds if pa.types.is_time(kind) and (seconds * TICKS[kind.unit]).denominator == 1 else REFUSED
        )
    return right_number(value, kind)


def moment(value: datetime) -> tuple[Fraction, bool]:
    zoned = value.tzinfo is not None
    since = (value.astimezone(UTC).replace(tzinfo=None) if zoned else value) - UNIX
    return Fraction(since // timedelta(microseconds=1), 10**6) + Fraction(
        getattr(value, "nanosecond", 0), 10**9
    ), zoned


def right_moment(since: Fraction, zoned: bool, kind: pa.DataType) -> Any:
    if pa.types.is_date(kind):
        return REFUSED if zoned or since % 86_400 else since / 86_400
    if not pa.types.is_timestamp(kind) or zoned != (kind.tz is not None):
        return REFUSED
    ticks = since * TICKS[kind.unit]
    return since if ticks.denominator == 1 and -(2**63) <= ticks < 2**63 else REFUSED


def right_day(days: int, kind: pa.DataType) -> Any:
    return days if pa.types.is_date(kind) else right_moment(Fraction(days * 86_400), False, kind)


def right_length(value: Any, kind: pa.DataType) -> Any:
    if not pa.types.is_duration(kind):
        return REFUSED
    of_numpy = value.asm8 if hasattr(value, "asm8") else np.timedelta64(value)
    seconds = Fraction(int(of_numpy.astype("m8[ns]").astype(np.int64)), 10**9)
    return seconds if (seconds * TICKS[kind.unit]).denominator == 1 else REFUSED


def right_number(value: Any, kind: pa.DataType) -> Any:
    of_float, types = isinstance(value, float | np.floating), pa.types
    value = float(value) if of_float else value if isinstance(value, Decimal) else int(value)
    if types.is_floating(kind):
        with np.errstate(over="ignore"):
            nearest = np.float32(float(value)) if types.is_float32(kind) else np.float64(float(value))
        if of_float:
            return REFUSED if isfinite(value) and not isfinite(nearest) else float(nearest)
        of_digits = isinstance(value, Decimal) and Decimal(str(nearest)) == value
        return float(nearest) if of_digits or Fraction(float(nearest)) == value else REFUSED
    if of_float and not isfinite(value):
        return REFUSED
    if types.is_integer(kind):
        bits = kind.bit_width - types.is_signed_integer(kind)
        low = -(2**bits) if types.is_signed_integer(kind) else 0
        return int(value) if Fraction(value) == int(value) and low <= int(value) < 2**bits else REFUSED
    if types.is_decimal(kind):
        exact = Decimal(repr(value)) if of_float else Decimal(value)
        scaled = Fraction(exact) * 10**kind.scale
        return exact if scaled.denominator == 1 and abs(scaled) < 10**kind.precision else REFUSED
    return REFUSED


def right_text(given: bytes, kind: pa.DataType) -> Any:
    types = pa.types
    if types.is_binary(kind):
        return given
    try:
        text = given.decode()
    except UnicodeDecodeError:
        return REFUSED
    if types.is_string(kind) or types.is_large_string(kind):
        return text
    text = text.strip()
    if types.is_duration(kind):
        return REFUSED
    if text in ("", "NA"):
        return None
    if types.is_boolean(kind):
        return {"true": True, "false": False, "1": True, "0": False}.get(text.lower(), REFUSED)
    if types.is_temporal(kind):
        return right_time_text(text, kind)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return REFUSED
    if types.is_floating(kind):
        made = float(np.float32(text) if types.is_float32(kind) else float(text))
        integral = text.lstrip("-").isdigit()
        return (
            REFUSED
            if (number.is_finite() and not isfinite(made)) or (integral and Fraction(made) != number)
            else made
        )
    return (
        right_number(
            int(number)
            if number.is_finite() and types.is_integer(kind) and number == int(number)
            else number,
            kind,
        )
        if number.is_finite()
        else REFUSED
    )


def right_time_text(text: str, kind: pa.DataType) -> Any:
    if pa.types.is_time(kind):
        return right(time.fromisoformat(text), kind) if text[2:3] == ":" else REFUSED
    if text[4:5] != "-":
        return REFUSED
    nanoseconds = text.endswith(".000000001")
    found = datetime.fromisoformat(text[:19] if nanoseconds else text)
    if pa.types.is_date(kind):
        return right(found.date(), kind) if len(text) == 10 else REFUSED
    if kind.tz == "UTC" and found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    since, zoned = moment(found)
    return right_moment(since + Fraction(int(nanoseconds), 10**9), zoned, kind)


def plainly(column: pa.Array) -> Any:
    """Return the only value of a column as ``right`` has it."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plainly(column.dictionary_decode())
    [value] = (
        column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        if pa.types.is_temporal(kind)
        else column.to_pylist()
    )
    if value is None or not pa.types.is_temporal(kind):
        return value
    return (
        Fraction(value, 86_400_000 if kind == pa.date64() else 1)
        if pa.types.is_date(kind)
        else Fraction(value, TICKS[kind.unit])
    )


def same(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, float) and isnan(found):
        return isnan(wanted)
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


def schema_of(kind: pa.DataType) -> Schema:
    return Schema({"ts": pa.int64(), "x": kind}, "ts", "s")


def in_arrow(value: Any, of: pa.DataType) -> pa.Array:
    if isinstance(value, np.generic):
        array = np.array([value])
        return pa.array(
            array.astype("M8[s]" if array.dtype.kind == "M" and of != pa.date32() else "m8[s]")
            if array.dtype.str.endswith("[m]")
            else array
        )
    return pa.array([value], of)


def of_page(kind: pa.DataType, column: Any) -> Page:
    return Page.of(schema_of(kind), {"ts": [1], "x": column})


def by_graph(kind: pa.DataType, data: Any) -> Any:
    graph = Graph("g")
    graph.sink("out", graph.source("in", schema_of(kind)))
    [column] = replay(graph, {"in": data}).results["out"].column("x").chunks
    return column


def by_push(kind: pa.DataType, value: Any) -> Any:
    graph, results = Graph("g"), []
    graph.sink("out", graph.source("in", schema_of(kind)))
    runner = Inline(graph, results.append)
    runner.push_row("in", {"ts": 1, "x": value})
    runner.drain()
    return results[0].message.column("x")


def by_lane(kind: pa.DataType, value: Any) -> Any:
    lane = RowLane("source 'in'", schema_of(kind))
    lane.add({"ts": 1, "x": value})
    return lane.take().column("x")


def by_message(format: str, kind: pa.DataType, data: Any) -> Any:
    reads = MESSAGE_FORMATS[format](schema_of(kind), "source", lambda *refused: None)
    pages = [message for message in reads.messages(data) if isinstance(message, Page) and len(message)]
    return pages[0].column("x") if pages else None


def by_key(kind: pa.DataType, column: pa.Array) -> Any:
    found = fitted(GroupWise(pa.record_batch({"x": column}), np.array([1])), schema_of(kind), "source")
    assert isinstance(found, GroupWise)
    return found.groups.column("x") if len(found) else None


def by_file(path: Path, kind: pa.DataType) -> Any:
    pages = list(open_trace(path, schema_of(kind)).pages())
    return pages[0].column("x") if pages else None


def by_driver(kind: pa.DataType, rows: Any) -> Any:
    graph = Graph("g")
    graph.sink("out", graph.source("in", schema_of(kind)))
    driver = GraphDriver(graph)
    driver.feed("in", rows)
    driver.move()
    [page] = driver._take("out", Page)
    return page.column("x")


def by_tail(path: Path, kind: pa.DataType) -> Any:
    source = FileTail(path, follow=False)
    [(data, _)] = asyncio.run(listed(source))
    return by_message("jsonl", kind, data)


def by_folder(path: Path, kind: pa.DataType) -> Any:
    folder = path.parent / "folder"
    folder.mkdir(exist_ok=True)
    (folder / path.name).unlink(missing_ok=True)
    (folder / path.name).hardlink_to(path)
    pieces = asyncio.run(listed(GrowingFolder(folder, schema_of(kind), follow=False)))
    return pieces[0][0].column("x") if pieces else None


async def listed(source: Any) -> list[Any]:
    return [piece async for piece in source.read(None)]


def stream_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def doors(value: Any, of: pa.DataType, folder: Path) -> dict[str, Callable[[pa.DataType], Any]]:
    """Return the doors that a value can enter by: functions of a type, whose column is None for a row refused."""
    array = in_arrow(value, of)
    table = pa.table({"ts": [1], "x": array})
    found: dict[str, Callable[[pa.DataType], Any]] = {
        "list": lambda kind: of_page(kind, [value]).column("x"),
        "among others": lambda kind: (
            Page.of(schema_of(kind), {"ts": [1, 2, 3], "x": (None, value, None)}).column("x").slice(1, 1)
        ),
        "long list": lambda kind: (
            Page.of(schema_of(kind), {"ts": [1] * 1100, "x": [value] * 1100}).column("x").slice(1, 1)
        ),
        "objects of NumPy": lambda kind: of_page(kind, np.array([value], object)).column("x"),
        "Arrow": lambda kind: of_page(kind, array).column("x"),
        "chunks": lambda kind: of_page(kind, pa.chunked_array([array])).column("x"),
        "dictionary": lambda kind: of_page(kind, array.dictionary_encode()).column("x"),
        "from_arrow": lambda kind: Page.from_arrow(schema_of(kind), table).column("x"),
        "replay": lambda kind: by_graph(kind, table),
        "push_row": lambda kind: by_push(kind, value),
        "row": lambda kind: by_lane(kind, value),
        "rows of a service": lambda kind: by_message("rows", kind, [{"ts": 1, "x": value}]),
        "table in a service": lambda kind: by_message("rows", kind, table),
        "Arrow message": lambda kind: by_message("arrow", kind, stream_of(table)),
        "key": lambda kind: by_key(kind, array),
        "rows": lambda kind: by_graph(kind, [{"ts": 1, "x": value}]),
        "columns": lambda kind: by_graph(kind, {"ts": [1], "x": [value]}),
        "driver": lambda kind: by_driver(kind, [{"ts": 1, "x": value}]),
    }
    if view := {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}.get(of):  # as Polars has them
        views = array.cast(view)
        categories = pa.DictionaryArray.from_arrays(pa.array([0], pa.uint32()), views)
        found["views"] = lambda kind: by_graph(kind, pa.table({"ts": [1], "x": views}))
        found["categories of Polars"] = lambda kind: by_graph(kind, pa.table({"ts": [1], "x": categories}))
        found["views in a service"] = lambda kind: by_message(
            "rows", kind, pa.table({"ts": [1], "x": categories})
        )
        arrow_views = in_file(folder / "views.arrow", pa.table({"ts": [1], "x": views}))
        found["views in a file"] = lambda kind: by_file(arrow_views, kind)
    if isinstance(value, np.generic | bool | int | float) and not hasattr(value, "asm8"):
        found["NumPy"] = lambda kind: of_page(kind, np.array([value])).column("x")
    if value is not None and not isinstance(value, bytes | date | time | timedelta):
        found["series"] = lambda kind: of_page(kind, pd.Series([value])).column("x")
    if value is not None and not isinstance(value, bytes | time | np.datetime64) and of != pa.date32():
        found["frame"] = lambda kind: by_graph(kind, pd.DataFrame({"ts": [1], "x": [value]}))
    if type(value) in (bool, int, float, str, bytes):
        found["msgpack message"] = lambda kind: by_message(
            "msgpack", kind, msgpack.packb({"ts": 1, "x": value})
        )
    if type(value) in (bool, int, str) or (type(value) is float and isfinite(value) and value < 2**53):
        line = json.dumps({"ts": 1, "x": value})
        found["JSON message"] = lambda kind: by_message("jsonl", kind, line.encode())
        found["JSON lines"] = lambda kind: by_file(written(folder / "a.jsonl", line), kind)
        found["JSON in a tail"] = lambda kind: by_tail(written(folder / "tail.jsonl", line), kind)
    if type(value) is str and value:
        found["CSV message"] = lambda kind: by_message("csv", kind, f'1,"{value}"\n'.encode())
        found["CSV"] = lambda kind: by_file(written(folder / "a.csv", f'ts,x\n1,"{value}"\n'), kind)
    for name, door in doors_of_messages(value, of).items():
        found[name] = lambda kind, door=door: door(schema_of(kind))  # type: ignore[misc]
    if of != pa.null():
        parquet, arrow = folder / "a.parquet", in_file(folder / "a.arrow", table)
        pq.write_table(table, parquet)
        found["Arrow file"] = lambda kind: by_file(arrow, kind)
        found["growing folder"] = lambda kind: by_folder(arrow, kind)
        if pq.read_table(parquet).schema == table.schema:  # it has no seconds
            found["Parquet"] = lambda kind: by_file(parquet, kind)
    return found


def in_file(path: Path, table: pa.Table) -> Path:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.slow(keep=16)
@pytest.mark.parametrize(
    ("value", "of"), VALUES, ids=lambda each: str(each) if isinstance(each, pa.DataType) else repr(each)
)
def test_a_value_is_the_same_by_every_door_or_refused_by_every_door(
    value: Any, of: pa.DataType, tmp_path: Path
) -> None:
    wrong, row = {}, [repr(each) for each, _ in VALUES].index(repr(value))
    for name, door in doors(value, of, tmp_path).items():
        for place, kind in enumerate(KINDS):
            if name not in ALWAYS and (row + place) % 4:
                continue  # these take long: each sees each value, and each type, in other pairs
            if name.startswith(("CSV", "JSON")) and pa.types.is_duration(kind):
                continue  # is refused as a whole, for there is no text of it
            if isinstance(value, float) and isnan(value) and name in ("series", "frame"):
                continue  # to pandas it is nothing
            wanted = right(value, kind)
            try:
                column = door(kind)
                found = REFUSED if column is None else plainly(column)
            except EngineError as error:
                found = REFUSED if "'x'" in str(error) and "smaller pages" not in str(error) else error
            if not same(found, wanted):
                wrong[name, str(kind)] = (found, wanted)
    assert not wrong, "\n".join(
        f"{cell}: {found!r}, not {wanted!r}" for cell, (found, wanted) in wrong.items()
    )
