"""Envelopes of Debezium as rows of a revision stream."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.connectors.formats import MESSAGE_FORMATS

KINDS: dict[str, pa.DataType] = {"id": pa.int64(), "ts": pa.int64(), "name": pa.string(), "change": pa.int8()}
SCHEMA = Schema(KINDS, "ts", "s", "change")


def read(messages: list[Any], schema: Schema = SCHEMA) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of messages, and the reasons of those that are refused."""
    told: list[str] = []
    made = MESSAGE_FORMATS["debezium"](
        schema, "source 'in'", lambda reason, record, rows: told.append(reason)
    )
    payloads = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
    return [row for m in made.messages(payloads) if isinstance(m, Page) for row in m.to_pylist()], told


def envelope(op: str, before: Any = None, after: Any = None, **source: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"table": "orders", **source}, "ts_ms": 1}


def a_row(ts: int, name: str | None = "a") -> dict[str, Any]:
    return {"id": 1, "ts": ts, "name": name}


def test_changes_add_rows_and_take_them_back() -> None:
    sent = [envelope("r", after=a_row(1)), envelope("c", after=a_row(2)), envelope("u", a_row(2), a_row(3, "b")),
            envelope("d", a_row(3, "b"))]  # fmt: skip
    expected = [(1, "a", 1), (2, "a", 1), (2, "a", -1), (3, "b", 1), (3, "b", -1)]
    for messages in (sent, [{"schema": {"type": "struct"}, "payload": each} for each in sent]):
        found, told = read(messages)
        assert [(row["ts"], row["name"], row["change"]) for row in found] == expected
        assert told == []
    kinds = {**KINDS, "_table": pa.string(), "_operation": pa.string()}
    found, _ = read([envelope("c", after=a_row(1), schema="east")], Schema(kinds, "ts", "s", "change"))
    assert (found[0]["_table"], found[0]["_operation"]) == ("east.orders", "insert")


def test_messages_without_a_row_are_passed_over() -> None:
    sent = [b"", b"null", {"ts_ms": 5}, {"payload": None}, {"status": "BEGIN", "id": "7", "event_count": None},
            {"op": "m", "message": {"prefix": "p"}, "source": {}},
            {"schema": None, "payload": {"ts_ms": 5}}]  # fmt: skip
    assert read(sent) == ([], [])


def test_what_is_no_whole_change_is_refused_with_the_way_out() -> None:
    parts = {
        "table orders was truncated": envelope("t"),
        "update of table orders has no row before it: let the server send whole rows": envelope(
            "u", None, a_row(1)
        ),
        "delete of table orders has no row before it": envelope("d"),
        "no envelope of Debezium: op must be": a_row(1),
        "op must be one of c, r, u, d, t, m; got 'x'": envelope("x"),
        "the line is no JSON object": b"[1]",
        "ts is null": envelope("u", {"id": 1, "ts": None, "name": None}, a_row(1)),
        "id: cannot read '1.5' as int64": envelope("u", a_row(1), {**a_row(2), "id": 1.5}),
        "name: cannot read '5' as string": envelope("c", after={**a_row(2), "name": 5}),
        "name of table orders was not sent": envelope("c", after=a_row(1, "__debezium_unavailable_value")),
    }
    for part, message in parts.items():
        found, told = read([message])
        assert found == []  # nor half of an update
        assert all(part in reason for reason in told), told
        assert told
    plain = Schema({"id": pa.int64(), "ts": pa.int64()}, "ts", "s")
    found, told = read([envelope("c", after=a_row(1)), envelope("u", a_row(1), a_row(2))], plain)
    assert [row["ts"] for row in found] == [1]
    assert "declare Schema(..., change=COLUMN)" in told[0]


def test_a_long_value_that_is_not_sent_again_is_that_of_the_row_before() -> None:
    found, told = read([envelope("u", a_row(1, "long"), a_row(2, "__debezium_unavailable_value"))])
    assert told == []
    assert [(row["change"], row["name"]) for row in found] == [(-1, "long"), (1, "long")]


def packed(number: int, scale: int) -> Any:
    size = max((number.bit_length() + 8) // 8, 1)
    return b64encode(number.to_bytes(size, "big", signed=True)).decode()


TYPED: dict[str, tuple[pa.DataType, str, Any, Any]] = {
    "day": (pa.date32(), "io.debezium.time.Date", -1, date(1969, 12, 31)),
    "ms": (pa.timestamp("us"), "io.debezium.time.Timestamp", 1500, datetime(1970, 1, 1, 0, 0, 1, 500_000)),
    "us": (pa.timestamp("us", "UTC"), "io.debezium.time.MicroTimestamp", 1, datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
    "ns": (pa.timestamp("us"), "io.debezium.time.NanoTimestamp", 2000, datetime(1970, 1, 1, 0, 0, 0, 2)),
    "zoned": (pa.timestamp("ms", "UTC"), "io.debezium.time.ZonedTimestamp", "2024-01-01T01:00:00+01:00",
              datetime(2024, 1, 1, tzinfo=UTC)),
    "time": (pa.time64("us"), "io.debezium.time.MicroTime", 3_661_000_001, time(1, 1, 1, 1)),
    "short": (pa.time32("ms"), "io.debezium.time.Time", 1, time(0, 0, 0, 1000)),
    "sum": (pa.decimal128(20, 3), "org.apache.kafka.connect.data.Decimal", packed(-1234, 2), Decimal("-12.340")),
    "any": (pa.decimal128(20, 3), "io.debezium.data.VariableScaleDecimal", {"scale": 1, "value": packed(15, 1)},
            Decimal("1.500")),
    "data": (pa.binary(), "", "/w==", b"\xff"),
    "doc": (pa.string(), "io.debezium.data.Json", '{"a": 1}', '{"a": 1}'),
}  # fmt: skip


def test_types_that_the_schema_part_names_are_exact() -> None:
    fields: list[dict[str, Any]] = [{"field": "ts", "type": "int64"}]
    for name, (_, of, _, _) in TYPED.items():
        kind = "int64" if name != "data" else "bytes"
        fields.append({"field": name, "type": kind, "name": of, "parameters": {"scale": "2"}})
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": fields}]}
    after = {"ts": 1, **{name: value for name, (_, _, value, _) in TYPED.items()}}
    kinds = {"ts": pa.int64(), "change": pa.int8(), **{name: kind for name, (kind, *_) in TYPED.items()}}
    found, told = read(
        [{"schema": schema, "payload": envelope("c", after=after)}], Schema(kinds, "ts", "s", "change")
    )
    assert told == []
    assert {name: found[0][name] for name in TYPED} == {name: value for name, (*_, value) in TYPED.items()}


def test_without_a_schema_part_numbers_are_in_the_unit_of_their_column() -> None:
    kinds = {
        "at": pa.timestamp("us"),
        "change": pa.int8(),
        "day": pa.date32(),
        "sum": pa.decimal128(10, 2),
        "t": pa.time64("ns"),
    }
    after = {"at": 1_500_000, "day": 365, "sum": "12.5", "t": 1000}
    schema = Schema(kinds, "at", change="change")
    found, told = read([envelope("c", after=after), envelope("c", after={**after, "sum": "AeJA"})], schema)
    at, clock = datetime(1970, 1, 1, 0, 0, 1, 500_000), time(0, 0, 0, 1)
    assert found == [{"at": at, "change": 1, "day": date(1971, 1, 1), "sum": Decimal("12.50"), "t": clock}]
    assert told == ["sum: cannot read 'AeJA' as decimal128(10, 2)"]


@pytest.mark.parametrize("lines", [True, False])
def test_a_file_of_envelopes_has_one_a_line(lines: bool) -> None:
    sent = [json.dumps(envelope("c", after=a_row(ts))).encode() for ts in (1, 2)]
    made = MESSAGE_FORMATS["debezium"](SCHEMA, "source 'in'", pytest.fail)
    data: Any = b"\n".join([*sent, b""]) if lines else sent
    assert [row["ts"] for m in made.messages(data) if isinstance(m, Page) for row in m.to_pylist()] == [1, 2]
