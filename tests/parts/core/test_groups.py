from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine.core.groups.group_index import KeyTables
from oop_engine.core.snapshot import pack, unpack
from oop_engine.extend import GroupIndex
from oop_engine.operators.keys.tables import IN_KERNELS
from tests.naive.kernel import slots_of

NAN = float("nan")
TABLES = pytest.mark.parametrize("tables", [KeyTables(), IN_KERNELS], ids=["numpy", "kernels"])
PRICE = [Decimal("1.50"), Decimal("2.00"), Decimal("-1.50")]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [1, 2, -7]),
    "uint64": (pa.uint64(), [0, 1, 2**64 - 1]),
    "float16": (pa.float16(), [np.float16(1), np.float16(NAN), np.float16(0.0), np.float16(-0.0)]),
    "float32": (pa.float32(), [1.5, NAN, 0.0, -0.0]),
    "float64": (pa.float64(), [1.5, NAN, -NAN, 0.0, -0.0, float("inf")]),
    "decimal128": (pa.decimal128(9, 2), PRICE),
    "decimal256": (pa.decimal256(50, 2), PRICE),
    "string": (pa.string(), ["", "a", "ä", "1"]),
    "large_string": (pa.large_string(), ["", "a"]),
    "binary": (pa.binary(), [b"", b"a", b"\xff"]),
    "fixed": (pa.binary(2), [b"ab", b"cd"]),
    "date32": (pa.date32(), [dt.date(2020, 1, 1), dt.date(1960, 1, 1)]),
    "date64": (pa.date64(), [dt.date(2020, 1, 1), dt.date(1960, 1, 1)]),
    "time": (pa.time32("s"), [dt.time(1), dt.time(2)]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(2020, 1, 1), dt.datetime(1960, 1, 1, microsecond=1)]),
    "timestamp_ns": (pa.timestamp("ns", "UTC"), [0, 1, 10**18 + 1]),
    "duration": (pa.duration("ms"), [dt.timedelta(1), dt.timedelta(milliseconds=-1)]),
    "interval": (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([0, 0, 0])]),
    "null": (pa.null(), [None]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b"]),
    "list": (pa.list_(pa.float64()), [[], [1.0], [1.0, None], [0.0], [-0.0], [NAN], [-NAN]]),
    "struct": (pa.struct({"a": pa.int64(), "b": pa.string()}), [{"a": 1, "b": "x"}, {"a": 1, "b": None}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("a", 2)], []]),
    "uuid": (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes]),
}


def column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A slice, so that whoever forgets the offset fails."""
    return pa.array([None, *values, None], kind).slice(1, len(values))


def rows(columns: list[pa.Array], count: int) -> list[tuple[Any, ...]]:
    return list(zip(*(c.to_pylist() for c in columns), strict=True)) if columns else [()] * count


@st.composite
def batches(draw: st.DrawFn, names: list[str]) -> list[list[pa.Array]]:
    found = []
    for size in draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)):
        domains = [(VALUES[n][0], [*VALUES[n][1], None]) for n in names]
        found.append([column([draw(st.sampled_from(vs)) for _ in range(size)], kind) for kind, vs in domains])
    return found


def check(names: list[str], parts: list[list[pa.Array]], kept: list[bool]) -> None:
    for tables in (KeyTables(), IN_KERNELS):
        check_in(tables, names, parts, kept)


def check_in(tables: KeyTables, names: list[str], parts: list[list[pa.Array]], kept: list[bool]) -> None:
    index, known = GroupIndex([VALUES[n][0] for n in names], tables), {}  # type: ignore[var-annotated]
    for part in parts:
        assert index.find(part).tolist() == slots_of(rows(part, 0), known, add=False)
        assert index.encode(part).tolist() == slots_of(rows(part, 0), known, add=True)
        assert len(index) == len(known)
    again = slots_of(rows(index.keys(np.arange(len(index))), 0), known, add=False)
    assert again == list(range(len(index)))  # each slot gives its key back
    slots = [slot for slot in range(len(index)) if kept[slot % len(kept)]]
    index.keep(np.array(slots, np.int64))
    place = {slot: i for i, slot in enumerate(slots)}
    loaded = GroupIndex([VALUES[n][0] for n in names], tables)
    loaded.load(unpack("test", pack("test", index.save())))
    for part in parts:
        expected = [place.get(slot, -1) for slot in slots_of(rows(part, 0), known, add=False)]
        assert index.find(part).tolist() == loaded.find(part).tolist() == expected
    for part in parts:
        assert index.encode(part).tolist() == loaded.encode(part).tolist()
    assert len(index) == len(loaded)


@pytest.mark.slow(keep=10)
@pytest.mark.parametrize("name", VALUES)
def test_slots_are_those_of_a_dictionary(name: str) -> None:
    @given(batches([name]), st.lists(st.booleans(), min_size=1, max_size=4))
    def holds(parts: list[list[pa.Array]], kept: list[bool]) -> None:
        check([name], parts, kept)

    holds()


@pytest.mark.parametrize(
    "names",
    [["string", "int8"], ["float64", "dictionary", "bool"], ["list", "timestamp"], ["null", "date32"]],
    ids="-".join,
)
def test_slots_of_several_columns(names: list[str]) -> None:
    @given(batches(names), st.lists(st.booleans(), min_size=1, max_size=4))
    def holds(parts: list[list[pa.Array]], kept: list[bool]) -> None:
        check(names, parts, kept)

    holds()


def test_without_columns_there_is_one_group_once_there_is_a_row() -> None:
    index = GroupIndex([])
    assert index.find([], 2).tolist() == [-1, -1]
    assert index.encode([], 0).tolist() == []
    assert len(index) == 0
    assert index.encode([], 3).tolist() == [0, 0, 0]
    assert index.find([], 2).tolist() == [0, 0]
    assert (len(index), index.keys(np.array([0]))) == (1, [])
    loaded = GroupIndex([])
    loaded.load(unpack("test", pack("test", index.save())))
    assert len(loaded) == 1
    index.keep(np.array([], np.int64))
    assert len(index) == 0


@TABLES
def test_equal_keys_of_other_types_are_found(tables: KeyTables) -> None:
    index = GroupIndex([pa.int32()], tables)
    index.encode([pa.array([5], pa.int32())])
    assert index.find([pa.array([5, 6], pa.int64())]).tolist() == [0, -1]
    words = GroupIndex([pa.string()], tables)
    words.encode([pa.array(["a"])])
    for many in (pa.large_string(), pa.binary()):
        expected = 0 if many == pa.large_string() else -1
        assert words.find([pa.array(["a", "b"] * 50, many)]).tolist() == [expected, -1] * 50
    assert words.find([pa.array(["b", "a"]).dictionary_encode()]).tolist() == [-1, 0]


@TABLES
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.int16(), pa.float32()], ids=str
)
def test_slots_of_large_pages(kind: pa.DataType, tables: KeyTables) -> None:
    rng = np.random.default_rng(0)
    index, known = GroupIndex([kind], tables), {}  # type: ignore[var-annotated]
    for rows, values in [(500, 40), (70, 400), (1000, 400), (100, 2000), (3000, 2000)]:
        keys = pa.array(rng.integers(0, values, rows), mask=rng.random(rows) < 0.01)
        page = keys.cast(kind) if pa.types.is_primitive(kind) else keys.cast(pa.string()).cast(kind)
        expected = slots_of([(key,) for key in page.to_pylist()], known, add=False)
        assert index.find([page]).tolist() == expected
        assert index.encode([page]).tolist() == slots_of(
            [(key,) for key in page.to_pylist()], known, add=True
        )
    index.keep(np.arange(0, len(index), 3))
    assert index.find([index.keys(np.arange(len(index)))[0]]).tolist() == list(range(len(index)))


@TABLES
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_bytes_follow_the_keys(kind: pa.DataType, tables: KeyTables) -> None:
    index = GroupIndex([kind], tables)
    empty = index.nbytes
    index.encode([pa.array(range(100_000)).cast(kind)])
    assert 100_000 * (8 + 4) < index.nbytes < 100_000 * 250
    index.keep(np.arange(3))
    assert index.nbytes < empty + 100_000


KINDS: dict[str, tuple[Callable[[int], Any], pa.DataType]] = {
    "decimal": (Decimal, pa.decimal128(10, 2)),
    "small decimal": (Decimal, getattr(pa, "decimal32", pa.decimal128)(5, 1)),
    "binary": (lambda i: bytes([i]), pa.binary()),
    "fixed binary": (lambda i: bytes([i, i]), pa.binary(2)),
    "time": (dt.time, pa.time64("ns")),
    "duration": (dt.timedelta, pa.duration("us")),
    "interval": (lambda i: pa.MonthDayNano([i, 1, 2]), pa.month_day_nano_interval()),
    "struct": (
        lambda i: {"a": Decimal(i), "b": "x"},
        pa.struct([("a", pa.decimal128(5, 1)), ("b", pa.string())]),
    ),
    "list": (lambda i: [dt.datetime(2020, 1, 1, i)] * i, pa.list_(pa.timestamp("us"))),
    "map": (lambda i: [("k", i)], pa.map_(pa.string(), pa.int64())),
    "half": (np.float16, pa.float16()),
    "beyond int64": (lambda i: 2**64 - 1 - i, pa.uint64()),
    "zoned": (lambda i: i, pa.timestamp("ms", "Asia/Tokyo")),
}


@TABLES
@pytest.mark.parametrize("rows", [20, 200])
@pytest.mark.parametrize("name", KINDS)
def test_keys_of_any_type_are_told_apart_and_found_again(name: str, rows: int, tables: KeyTables) -> None:
    make, kind = KINDS[name]
    expected = [i % 7 for i in range(rows)]
    column = pa.array([None if i == 6 else make(i) for i in expected], kind)
    index = GroupIndex([kind], tables)
    assert index.encode([column]).tolist() == expected
    assert index.find([column]).tolist() == expected
    assert index.keys(np.arange(7))[0].equals(column.slice(0, 7))
    loaded = GroupIndex([kind], tables)
    loaded.load(unpack("test", pack("test", index.save())))
    assert loaded.find([column]).tolist() == expected
