from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import ContractError, Page, Schema
from oop_engine.core.late.coded_page import CodedPage
from oop_engine.core.late.late_page import packed_rows
from oop_engine.core.page import concat

SCHEMA = Schema({"ts": pa.int64(), "src": pa.string()}, "ts", "s")
PAGE = Page.of(SCHEMA, {"ts": [3, 1, 2], "src": ["a", None, "c"]}, [10, 10, 12])


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint64(),
        pa.timestamp("s"),
        pa.timestamp("ns", "Asia/Tokyo"),
    ],
    ids=str,
)
def test_times_are_int64_whatever_the_type_and_the_offset(kind: pa.DataType) -> None:
    schema = Schema({"ts": kind}, "ts", "" if pa.types.is_timestamp(kind) else "s")
    page = Page.of(schema, {"ts": pa.array([5, 6, 7]).cast(kind)})
    assert page.times.dtype == np.int64
    assert page.slice(1, 3).times.tolist() == [6, 7]
    assert Page.empty(schema).times.tolist() == []


def test_a_time_beyond_int64_is_refused_not_wrapped() -> None:
    page = Page.of(Schema({"ts": pa.uint64()}, "ts", "s"), {"ts": [2**63]})
    with pytest.raises(ContractError, match="page: 'ts' must be below 2\\*\\*63"):
        _ = page.times


def test_negative_times_are_times() -> None:
    assert Page.of(SCHEMA, {"ts": [-5], "src": ["a"]}).times.tolist() == [-5]


def test_an_attribute_that_a_page_does_not_have_is_named() -> None:
    page = Page.of(SCHEMA, {"ts": [1], "src": ["a"]})
    for one in (
        page,
        CodedPage(SCHEMA, page.batch),
        packed_rows(Schema({"ts": pa.int64()}, "ts", "s"), [(1,)]),
    ):
        with pytest.raises(AttributeError, match="object has no attribute 'time'"):
            one.time  # type: ignore[union-attr]  # noqa: B018


def test_pages_travel_with_their_times_whether_somebody_has_asked_for_them_or_not() -> None:
    page = Page.of(SCHEMA, {"ts": [3, 1], "src": ["a", "b"]})
    for _ in range(2):
        assert pickle.loads(pickle.dumps(page)).times.tolist() == page.times.tolist() == [3, 1]


def test_times_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        PAGE.times[0] = 7


def test_the_reach_is_that_of_the_times_asked_for_and_not_of_a_part() -> None:
    page = Page.of(Schema({"ts": pa.int64()}, "ts", "s"), {"ts": [5, -3, 9]})
    assert page.reach_of(page.times) == page.reach_of(page.times) == (-3, 9)
    assert page.reach_of(page.times + 1) == (-2, 10)
    page.reach = page.times, -3, 9
    for part, reach in ((page.slice(0, 1), (5, 5)), (page.filter(page.times < 6), (-3, 5)), (page, (-3, 9))):
        assert part.reach_of(part.times) == reach


def test_other_columns_are_refused() -> None:
    with pytest.raises(ContractError, match=r"columns must be .*src.* got 'ts: int64'"):
        Page(SCHEMA, pa.record_batch({"ts": [1]}))
    with pytest.raises(ContractError, match="columns must be"):
        Page(SCHEMA, pa.record_batch({"ts": pa.array([1], pa.int32()), "src": ["a"]}))


def test_null_times_are_refused() -> None:
    with pytest.raises(ContractError, match="'ts' must not be null; refuse such rows at the source"):
        Page.of(SCHEMA, {"ts": [1, None], "src": ["a", "b"]})


def test_each_row_has_an_arrival_or_none_has() -> None:
    with pytest.raises(ContractError, match="one arrival a row; got 1 for 2 rows"):
        Page.of(SCHEMA, {"ts": [1, 2], "src": ["a", "b"]}, [1])


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_arrivals_have_a_zone_if_event_time_has_one(zone: str | None) -> None:
    schema = Schema({"ts": pa.timestamp("s", zone)}, "ts")
    times = pa.array([5], pa.int64())
    table = pa.table(
        {
            "ts": times.cast(pa.timestamp("s", zone)),
            **{str(z): times.cast(pa.timestamp("ms", z)) for z in (None, "UTC")},
        }
    )
    assert Page.from_arrow(schema, table, arrival=str(zone)).arrival.tolist() == [0]  # type: ignore[union-attr]
    with pytest.raises(ContractError, match="arrivals must have a zone if event time has one, and none else"):
        Page.from_arrow(schema, table, arrival="UTC" if zone is None else "None")


def test_parts_keep_their_arrivals() -> None:
    for part, rows in [
        (PAGE.slice(1, 3), [1, 2]),
        (PAGE.filter(np.array([True, False, True])), [0, 2]),
        (PAGE.take(np.array([2, 0])), [2, 0]),
    ]:
        assert part.to_pylist() == [PAGE.to_pylist()[i] for i in rows]
        assert part.arrival is not None
        assert part.arrival.tolist() == [[10, 10, 12][i] for i in rows]
        assert part.without_arrival().arrival is None
    assert PAGE.slice(3, 3).to_pylist() == []


def test_a_slice_counts_and_shares_its_own_rows() -> None:
    page = Page.of(Schema({"ts": pa.int64()}, "ts", "s"), {"ts": list(range(1000))})
    assert page.slice(10, 20).nbytes == 80
    assert np.shares_memory(page.slice(10, 20).times, page.times)


def test_columns_are_cast_to_the_schema() -> None:
    page = Page.of(SCHEMA, {"ts": np.array([1], np.int8), "src": pa.chunked_array([["a"]])})
    assert page.batch.schema == SCHEMA.fields


def test_pages_are_equal_by_rows() -> None:
    assert PAGE.take(np.arange(3)) == PAGE
    assert PAGE.slice(0, 2) != PAGE
    assert PAGE != "page"
    assert repr(PAGE) == "Page(3 rows of ts, src)"


def test_pages_are_joined() -> None:
    one, two = PAGE.slice(0, 1), PAGE.slice(1, 3)
    joined = concat(SCHEMA, [one, two])
    assert joined == PAGE
    assert joined.arrival is not None
    assert joined.arrival.tolist() == [10, 10, 12]
    assert concat(SCHEMA, [one, two.without_arrival()]).arrival is None
    assert concat(SCHEMA, [one]) is one
    assert len(concat(SCHEMA, [])) == 0


@pytest.mark.parametrize("value", [1.5, -0.25, np.float32(2.5), Decimal("1.5")], ids=repr)
@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.timestamp("s")], ids=str)
def test_a_fraction_is_no_integer_and_no_moment(value: Any, kind: pa.DataType) -> None:
    """As in an array of NumPy; Arrow would cut it off where it comes in a list."""
    schema = Schema({"ts": pa.int64(), "x": kind}, "ts", "s")
    with pytest.raises(ContractError, match=rf"page: 'x' must be {kind}".replace("[", r"\[")):
        Page.of(schema, {"ts": [1, 2], "x": [value, None]})


NOON = datetime(2024, 1, 1, 12, 0, 0, 5_000)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (NOON, pa.timestamp("s")),
        (NOON.replace(tzinfo=UTC), pa.timestamp("s", "UTC")),
        (NOON, pa.date32()),
        (NOON.time(), pa.time32("s")),
        (timedelta(milliseconds=5), pa.duration("s")),
    ],
    ids=lambda value: str(value).replace(" ", "_"),
)
def test_a_moment_finer_than_its_column_is_refused(value: Any, kind: pa.DataType) -> None:
    schema = Schema({"ts": pa.int64(), "x": kind}, "ts", "s")
    with pytest.raises(ContractError, match="page: 'x' must be"):
        Page.of(schema, {"ts": [1, 2], "x": [None, value]})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (NOON, pa.timestamp("ms")),
        (NOON.replace(microsecond=0), pa.timestamp("s")),
        (datetime.max, pa.timestamp("us")),
        (datetime(2024, 1, 1), pa.date64()),
        (NOON.time(), pa.time32("ms")),
        (timedelta(days=2), pa.duration("s")),
    ],
    ids=lambda value: str(value).replace(" ", "_"),
)
def test_a_moment_that_its_column_holds_is_taken(value: Any, kind: pa.DataType) -> None:
    schema = Schema({"ts": pa.int64(), "x": kind}, "ts", "s")
    page = Page.of(schema, {"ts": [1, 2], "x": [None, value]})
    assert page.column("x") == pa.array([None, value], kind)


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(ContractError, match="must have the same number of rows; got ts 2, src 1"):
        Page.of(SCHEMA, {"ts": [1, 2], "src": ["a"]})
