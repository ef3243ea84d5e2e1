"""Formats and values: each cell of the table of docs/formats.md, tried: what a sink writes a source reads."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import EngineError, Page, Schema
from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.connectors.formats.payloads import check_payloads, payloads_of
from oop_engine.formats import Avro, Protobuf
from tests.sources import ROOT

FORMATS = ("jsonl", "csv", "msgpack", "arrow", "avro", "protobuf")
UTC_MS = pa.timestamp("ms", "UTC")
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [2**63 - 1, -(2**63), 0]),
    "uint64": (pa.uint64(), [2**64 - 1, 0]),
    "small integers": (pa.int8(), [-128, 127]),
    "float64": (pa.float64(), [0.1, -1e300, 5e-324]),
    "float32": (pa.float32(), [0.5, 2.0**-149]),
    "NaN, infinities": (pa.float64(), [float("nan"), float("inf"), float("-inf")]),
    "booleans": (pa.bool_(), [True, False]),
    "texts": (pa.string(), ['a,"\n\\ü', "5", "true", "null", "\n"]),
    "empty texts": (pa.string(), [""]),
    "dictionaries of texts": (pa.dictionary(pa.int32(), pa.string()), ["a", "a", "b"]),
    "bytes": (pa.binary(), [b"\x00\xff", b""]),
    "decimals": (pa.decimal128(38, 10), [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.5")]),
    "moments in UTC": (UTC_MS, [datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC), datetime(9999, 12, 31, tzinfo=UTC)]),
    "moments beyond the year 9999": (pa.timestamp("us", "UTC"), [2**60, -(2**60)]),
    "moments of a zone": (pa.timestamp("us", "Europe/Berlin"), [1, 1_700_000_000_000_001]),
    "nanoseconds": (pa.timestamp("ns", "UTC"), [1, -1, 1_700_000_000_123_456_789]),
    "moments without a zone": (pa.timestamp("us"), [1, -1]),
    "days": (pa.date32(), [date(1, 1, 1), date(2024, 2, 29)]),
    "times of day": (pa.time64("us"), [time(23, 59, 59, 999_999), time(0)]),
    "lengths of time": (pa.duration("ms"), [timedelta(milliseconds=5), timedelta(days=-1)]),
    "structs": (pa.struct({"a": pa.int64(), "at": UTC_MS}),
                [{"a": 5, "at": datetime(2024, 1, 1, tzinfo=UTC)}, {"a": None, "at": None}]),
    "lists": (pa.list_(pa.float64()), [[0.5, -1.0], []]),
    "lists with nulls": (pa.list_(pa.int64()), [[1, None]]),
    "lists of structs": (pa.list_(pa.struct({"d": pa.decimal128(5, 2)})), [[{"d": Decimal("1.25")}]]),
    "maps": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", -1)], []]),
    "structs of bytes": (pa.struct({"a": pa.binary()}), [{"a": b"\xff"}]),
}  # fmt: skip


def array(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """Return values as an array; numbers of moments, too."""
    if pa.types.is_timestamp(kind) and values and isinstance(values[0], int):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def written(format: str, page: Page, registry: Any) -> list[bytes]:
    """Return the messages that a sink writes; raises as it does when it opens."""
    if format in ("avro", "protobuf"):
        made = (Avro if format == "avro" else Protobuf)(registry)
        return asyncio.run(made.writer(page.schema.fields, "t", "sink"))(page.batch)
    check_payloads("sink", format, page.schema.fields)
    return payloads_of(page, format)


def read(format: str, schema: Schema, payloads: list[bytes], registry: Any) -> tuple[pa.Table, list[str]]:
    """Return the rows that a source reads, and the reasons of those that it refuses."""
    told: list[str] = []
    place, refuse = "source 'in'", lambda reason, record, rows: told.append(reason)
    if format in ("avro", "protobuf"):
        reader = (Avro if format == "avro" else Protobuf)(registry).reader(schema, place, refuse, {})
        asyncio.run(reader.ready(payloads))
    else:
        reader = MESSAGE_FORMATS[format](schema, place, refuse)
    pages = [m.batch for m in reader.messages(payloads) if isinstance(m, Page)]
    return pa.Table.from_batches(pages, schema.fields), told


@pytest.fixture(scope="module")
def registry() -> Any:
    return new_registry()


def new_registry() -> Any:
    pytest.importorskip("fastavro", reason="fastavro is not installed (the extra avro)")
    pytest.importorskip(
        "google.type.date_pb2", reason="googleapis-common-protos is not installed (the extra protobuf)"
    )
    found = pytest.importorskip(
        "confluent_kafka.schema_registry", reason="confluent-kafka has no registry client"
    )
    return found.SchemaRegistryClient.new_client({"url": "mock://"})


def page_of(kind: pa.DataType, cells: pa.Array) -> Page:
    schema = Schema({"ts": pa.int64(), "v": kind}, "ts", "rows")
    return Page.of(schema, {"ts": list(range(len(cells))), "v": cells})


def outcome(format: str, page: Page, registry: Any) -> str:
    """Return in a word what becomes of the values of a page that is written and read again."""
    try:
        payloads = written(format, page, registry)
    except EngineError:
        return "refused"
    found, told = read(format, page.schema, payloads, registry)
    assert told == []
    before, after = page.batch.column("v"), found.column("v").combine_chunks()
    if pa.types.is_map(before.type) and format == "protobuf":  # its maps have no order
        before, after = (
            pa.array([row and sorted(row) for row in each.to_pylist()], each.type) for each in (before, after)
        )
    shown = [str(shown_of(each)) for each in (after, before)]  # NaN equals nothing, and is shown alike
    return "same" if shown[0] == shown[1] else f"{shown[0]}, not {shown[1]}"


def shown_of(column: pa.Array) -> list[Any]:
    """Return values that can be shown, moments as their numbers."""
    return list((column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist())


def table() -> dict[str, list[str]]:
    """Return the cells of the table, by kind of value."""
    text = (ROOT / "docs/formats.md").read_text().split("## Values\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip().strip("`") for cell in row] for row in rows]
    assert cells[0][1 : len(FORMATS) + 1] == [*FORMATS]
    return {row[0]: row[1 : len(FORMATS) + 1] for row in cells[2:]}


def test_the_table_has_all_kinds_of_values() -> None:
    assert [*table()] == [*VALUES]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("value", VALUES)
def test_each_cell_of_the_table(value: str, format: str, registry: Any) -> None:
    kind, values = VALUES[value]
    found = outcome(format, page_of(kind, array(kind, values)), registry)
    assert found == table()[value][FORMATS.index(format)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("value", VALUES)
def test_nulls_stay_nulls(value: str, format: str, registry: Any) -> None:
    kind, values = VALUES[value]
    cells = pa.concat_arrays([array(kind, values), pa.nulls(1, kind)])
    if outcome(format, page_of(kind, cells[:-1]), registry) != "same":
        return
    if format == "protobuf" and (pa.types.is_list(kind) or pa.types.is_map(kind)):
        with pytest.raises(EngineError, match="which Protobuf has not"):
            written(format, page_of(kind, cells), registry)
        return
    assert outcome(format, page_of(kind, cells), registry) == "same"


SCALARS = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1), pa.float64(): st.floats(allow_nan=False), pa.bool_(): st.booleans(),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    pa.decimal128(12, 3): st.decimals(-(10**8), 10**8, places=3), pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(UTC)), pa.timestamp("us"): st.datetimes(),
    pa.time64("us"): st.times(),
}  # fmt: skip


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, list[Any]]:
    """Draw a type, nested or not, and values of it."""
    kind = draw(st.sampled_from([*SCALARS]))
    one = SCALARS[kind]
    match draw(st.sampled_from(["plain", "list", "struct", "map"])):
        case "list":
            kind, one = pa.list_(kind), st.lists(one, max_size=3)
        case "struct":
            kind, one = (
                pa.struct({"a": kind, "b": pa.string()}),
                st.fixed_dictionaries({"a": one, "b": st.none()}),
            )
        case "map":
            kind, one = (
                pa.map_(pa.string(), kind),
                st.dictionaries(SCALARS[pa.string()], one, max_size=3).map(lambda d: [*d.items()]),
            )
    return kind, draw(st.lists(one, min_size=1, max_size=4))


@settings(max_examples=60, deadline=None)
@given(column=columns(), format=st.sampled_from(FORMATS))
def test_what_a_sink_writes_a_source_reads(column: tuple[pa.DataType, list[Any]], format: str) -> None:
    kind, values = column
    found = outcome(format, page_of(kind, pa.array(values, kind)), REGISTRY)
    nested = pa.types.is_nested(kind)
    assert found == ("refused" if nested and format == "csv" else "same")


REGISTRY: Any = None


@pytest.fixture(autouse=True)
def one_registry(registry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "REGISTRY", registry)


@pytest.mark.parametrize("format", FORMATS)
def test_a_moment_with_an_offset_in_a_column_without_a_zone_has_its_way_out(
    format: str, registry: Any
) -> None:
    sent = page_of(pa.string(), pa.array(["2026-03-01T12:00:00+02:00", "2026-03-01T12:00:00"]))
    plain = Schema({"ts": pa.int64(), "v": pa.timestamp("us")}, "ts", "rows")
    found, told = read(format, plain, written(format, sent, registry), registry)
    assert found.column("v").to_pylist() == [datetime(2026, 3, 1, 12)]
    way_out = "it has an offset, and the column no zone: declare timestamp[us, tz=UTC], in SQL TIMESTAMPTZ"
    assert told == [f"v: cannot read '2026-03-01T12:00:00+02:00' as timestamp[us]: {way_out}"]
