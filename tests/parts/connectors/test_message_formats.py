"""Formats of messages: pages and punctuation of what can be read, and a reason for each row that cannot."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import groupby
from random import Random
from typing import Any

import msgpack
import pyarrow as pa
import pytest

from oop_engine import GraphError, GroupWise, Linear, Page, Schema
from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.connectors.formats.csv_messages import CsvMessages
from oop_engine.connectors.formats.payloads import PAYLOADS, check_payloads, payloads_of
from oop_engine.connectors.message_format import shown
from oop_engine.errors import TraceError
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.unknown_columns import OTHERS

SCHEMA = Schema({"ts": pa.int64(), "key": pa.string(), "n": pa.float64()}, "ts", "s")


def read(name: str, *data: Any) -> tuple[list[Any], list[tuple[str, int]]]:
    """Return the messages, pages as rows, and the reasons of what was left out."""
    told: list[tuple[str, int]] = []
    made = MESSAGE_FORMATS[name](
        SCHEMA, "source 'in'", lambda reason, record, rows: told.append((reason, rows))
    )
    messages = [message for piece in data for message in made.messages(piece)]
    return [[*m.batch.to_pydict().values()] if isinstance(m, Page) else m for m in messages], told


def test_json_lines_and_punctuation_in_their_order() -> None:
    found, told = read(
        "jsonl",
        b'{"ts": 1, "key": "a", "n": 2}\n{"punctuation": {"below": 1}}\n{"ts": 3}\n',
        [b'{"ts":\n 4}', b'{"punctuation": {"groups": {"key": ["a"]}, "below": [4]}}'],
    )
    assert found == [
        [[1], ["a"], [2.0]],
        Linear(1),
        [[3], [None], [None]],
        [[4], [None], [None]],
        GroupWise.of({"key": ["a"]}, [4]),
    ]
    assert told == []


def test_json_that_cannot_be_read_is_left_out_row_by_row() -> None:
    found, told = read(
        "jsonl",
        b'{"ts": 1}\nno\n{"ts": null}\n{"ts": 2.5}\n{"key": "a"}\n{"ts": 9}\n{"punctuation": {"below": 1.5}}\n'
        b'{"punctuation": {"groups": {"other": [1]}, "below": [1]}}\n',
    )
    assert found == [[[1, 9], [None, None], [None, None]]]
    assert sum(rows for _, rows in told) == 6
    assert {reason for reason, _ in told} >= {"the line is no JSON object", "ts is null"}


def test_csv_with_and_without_a_line_of_names() -> None:
    assert read("csv", b"1,a,2.5\n2,,\n")[0] == [[[1, 2], ["a", None], [2.5, None]]]
    found, told = read("csv", b"key,more,ts,n\na,x,1,2\n", b"b,x,2,3\nshort\nc,x,y,3\n")
    assert found == [[[1], ["a"], [2.0]], [[2], ["b"], [3.0]]]
    assert told == [("must have 4 cells; got 1", 1), ("ts: cannot read 'y' as int64", 1)]


@pytest.mark.parametrize("delimiter", [",", ";", "-"])
def test_cells_in_which_a_name_is_a_part_are_no_line_of_names(
    monkeypatch: pytest.MonkeyPatch, delimiter: str
) -> None:
    schema = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")
    asked: list[bytes] = []
    header = CsvMessages._header

    def noted(self: CsvMessages, line: bytes) -> list[bytes] | None:
        asked.append(line)
        return header(self, line)

    monkeypatch.setattr(CsvMessages, "_header", noted)
    csv = CsvFormat(delimiter=delimiter)
    read_by = CsvMessages(schema, "log", lambda *refused: pytest.fail(str(refused)), csv)
    lines = [
        f"{n}{delimiter}{cell}" for n, cell in enumerate(["host_1", "myhost", "host.b", "é host2", "hosts"])
    ]
    lines += [f"host{delimiter}ts", f"b{delimiter}7", f'"host"{delimiter}ts', f"c{delimiter}8"]
    found = list(read_by.messages("".join(f"{line}\n" for line in lines).encode()))
    rows = [tuple(row.values()) for page in found if isinstance(page, Page) for row in page.batch.to_pylist()]
    assert rows == [
        (0, "host_1"),
        (1, "myhost"),
        (2, "host.b"),
        (3, "é host2"),
        (4, "hosts"),
        (7, "b"),
        (8, "c"),
    ]
    assert [line.rstrip() for line in asked] == [lines[5].encode(), lines[7].encode()]


def test_columns_that_no_text_can_be_are_told_before_anything_is_read() -> None:
    for name, kind in (("csv", pa.list_(pa.string())), ("jsonl", pa.list_(pa.duration("s")))):
        lists = Schema({"ts": pa.int64(), "tags": kind}, "ts", "s")
        with pytest.raises(
            TraceError, match=r"source 'in': column 'tags': list<.*> has no text form: use arrow"
        ):
            MESSAGE_FORMATS[name](lists, "source 'in'", print)


NESTED = Schema(
    {"ts": pa.int64(),
     "v": pa.struct({"at": pa.timestamp("ms", "UTC"), "tags": pa.list_(pa.struct({"n": pa.int8(), "t": pa.string()}))}),
     "m": pa.map_(pa.string(), pa.decimal128(5, 2))}, "ts", "s",
)  # fmt: skip


def test_lists_objects_and_maps_of_json_are_columns_of_their_types() -> None:
    told: list[str] = []
    made = MESSAGE_FORMATS["jsonl"](NESTED, "source 'in'", lambda reason, record, rows: told.append(reason))
    lines = [
        '{"ts": 1, "v": {"at": "1970-01-01T00:00:01Z", "tags": [{"n": "5", "t": "a"}, null], "x": 1}, '
        '"m": {"a": 1.25}}',
        '{"ts": 2, "v": null, "m": [["b", "3"]]}',
        '{"ts": 3, "v": {"tags": [{"n": 128}]}}',
        '{"ts": 4, "v": {"tags": [{}, {"t": 5}]}}',
        '{"ts": 5, "v": {"at": 7}}',
        '{"ts": 6, "v": [1]}',
        '{"ts": 7, "m": {"a": 1.234}}',
        '{"ts": 8, "v": {"tags": [{"n": 1, "n": 2}]}}',
        '{"ts": 9, "m": {"a": {}}}',
    ]
    found = [
        row
        for m in made.messages("\n".join([*lines, ""]).encode())
        if isinstance(m, Page)
        for row in m.to_pylist()
    ]
    assert [(row["ts"], row["m"]) for row in found] == [
        (1, [("a", Decimal("1.25"))]),
        (2, [("b", Decimal("3.00"))]),
    ]
    assert found[0]["v"] == {
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "tags": [{"n": 5, "t": "a"}, None],
    }
    assert made.unknown.counts == {"v.x": 1}
    parts = ["v.tags[0].n: cannot read '128' as int8", "v.tags[1].t: cannot read '5' as string",
             "v.at: cannot read '7'",
             "v: cannot read ['1'] as struct", "m['a']: cannot read '1.234' as decimal128(5, 2)",
             "v.tags[0].n: cannot read 'two values'", "m['a']: cannot read {} as decimal128(5, 2)"]  # fmt: skip
    assert len(told) == len(parts)
    for reason, part in zip(told, parts, strict=True):
        assert reason.startswith(part)


def test_fields_that_a_struct_has_not_are_left_out_and_counted_in_all_formats() -> None:
    kind = pa.struct({"a": pa.int64()})
    schema = Schema({"ts": pa.int64(), "v": kind}, "ts", "s")
    for name in ("jsonl", "msgpack", "arrow"):
        made = MESSAGE_FORMATS[name](schema, "source 'in'", pytest.fail)
        given = given_in(name, [{"ts": 1, "v": {"a": 5, "b": 6}}, {"ts": 2, "v": {"a": 7, "b": None}}])
        rows = [
            row
            for piece in given
            for m in made.messages(piece)
            if isinstance(m, Page)
            for row in m.to_pylist()
        ]
        assert rows == [{"ts": 1, "v": {"a": 5}}, {"ts": 2, "v": {"a": 7}}]
        assert made.unknown.counts == {"v.b": 2}


def test_a_list_in_msgpack_that_cannot_be_read_is_left_out_alone() -> None:
    lists = Schema({"ts": pa.int64(), "tags": pa.list_(pa.string())}, "ts", "s")
    told: list[str] = []
    reads = MESSAGE_FORMATS["msgpack"](lists, "source 'in'", lambda reason, record, rows: told.append(reason))
    tags: list[Any] = [["a"], 5, [], None, [7], ["b", None]]
    sent = [msgpack.packb({"ts": ts, "tags": some}) for ts, some in enumerate(tags)]
    assert [m.to_pylist() for m in reads.messages(sent) if isinstance(m, Page)] == [
        [{"ts": ts, "tags": tags[ts]} for ts in (0, 2, 3, 5)],
    ]
    assert told == ["tags: cannot read 5 as list<item: string>", "tags[0]: cannot read 7 as string"]
    assert [m.to_pylist() for m in reads.messages(sent[2:3]) if isinstance(m, Page)] == [
        [{"ts": 2, "tags": []}]
    ]


def test_json_has_no_word_for_what_is_no_number() -> None:
    lists = Schema({"ts": pa.int64(), "v": pa.list_(pa.float64()), "x": pa.float64()}, "ts", "s")
    page = Page.of(lists, {"ts": [1], "v": [[1.5, float("nan")]], "x": [float("-inf")]})
    [payload] = payloads_of(page, "jsonl")
    assert json.loads(payload, parse_constant=pytest.fail) == {"ts": 1, "v": [1.5, "nan"], "x": "-inf"}


def test_arrow_streams() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"more": [1], "ts": [5], "key": ["a"], "n": [1.0]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    whole = sink.getvalue().to_pybytes()
    found, told = read("arrow", [whole, b"no", whole[:50]], whole)
    assert found == [[[5], ["a"], [1.0]]] * 2
    assert [rows for _, rows in told] == [1, 1]


def unknown(name: str, *data: Any) -> dict[str, int]:
    """Return the columns that the schema does not have, counted."""
    made = MESSAGE_FORMATS[name](SCHEMA, "source 'in'", lambda reason, record, rows: None)
    for piece in data:
        list(made.messages(piece))
    return made.unknown.counts


def given_in(name: str, rows: list[dict[str, Any]]) -> list[Any]:
    """Return rows as data of a format, in some pieces."""
    if name == "rows":
        return [rows[:2], *rows[2:]]
    if name == "msgpack":
        return [[*map(msgpack.packb, rows[:2])], *map(msgpack.packb, rows[2:])]
    if name == "jsonl":
        return [b"".join(json.dumps(row).encode() + b"\n" for row in rows)]
    alike = [list(some) for _, some in groupby(rows, lambda row: [*row])]
    if name == "csv":
        return [
            "".join(
                f"{line}\n" for line in (",".join(some[0]), *(",".join(map(str, r.values())) for r in some))
            ).encode()
            for some in alike
        ]
    return [payload for some in alike for payload in streams(some)]


def streams(rows: list[dict[str, Any]]) -> list[bytes]:
    table, sink = pa.Table.from_pylist(rows), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return [sink.getvalue().to_pybytes()]


@pytest.mark.parametrize("name", ["rows", "jsonl", "csv", "msgpack", "arrow"])
def test_columns_that_the_schema_does_not_have_are_counted_by_name(name: str) -> None:
    plain = {"ts": 1, "key": "a", "n": 1.5}
    rows = [plain, plain | {"x": 1}, plain | {"x": 2, "größe": "b"}, plain | {"x": 1}, plain]
    assert unknown(name, *given_in(name, rows)) == {"x": 3, "größe": 1}
    assert unknown(name, *given_in(name, [plain])) == {}


@pytest.mark.parametrize("name", ["rows", "jsonl", "csv", "msgpack", "arrow"])
def test_ever_new_names_fill_no_memory(name: str) -> None:
    plain = {"ts": 1, "key": "a", "n": 1.5}
    rows = [plain | {f"{'x' * 500 * (i % 2)}{i}": 1} for i in range(300)]
    counts = unknown(name, *given_in(name, rows))
    assert len(counts) == 51 or name == "jsonl"  # the long ones begin alike
    assert sum(counts.values()) == 300
    assert counts[OTHERS] >= 100
    assert max(map(len, counts)) <= 64


def test_a_refused_row_of_csv_is_shown_as_text() -> None:
    refused: list[tuple[Any, ...]] = []
    schema = Schema({"ts": pa.int64(), "host": pa.string(), "n": pa.int64()}, "ts", "s")
    reads = MESSAGE_FORMATS["csv"](schema, "source 'in'", lambda *found: refused.append(found))
    assert list(reads.messages(b"1,a,x\n")) == []
    assert refused == [("n: cannot read 'x' as int64", "{'ts': '1', 'host': 'a', 'n': 'x'}", 1)]


def test_a_row_that_is_refused_has_its_other_columns_counted_too() -> None:
    assert unknown("jsonl", b'{"time": 1, "key": "a"}\n{"ts": 2}\nno\n') == {"time": 1}
    assert unknown("msgpack", msgpack.packb({"time": 1})) == {"time": 1}
    assert unknown("csv", b"ts,key,n,\xff\n1,a,2,3\n") == {"\ufffd": 1}


def test_rows_of_python() -> None:
    page = Page.of(SCHEMA, {"ts": [1], "key": ["a"], "n": [1.0]})
    rows = [{"ts": 2}, {"ts": "x"}, {"ts": 3, "key": "b"}]
    found, told = read("rows", page, Linear(1), rows, pa.table({"ts": [4], "key": ["a"], "n": [1.0]}), [page])
    assert [m if m == Linear(1) else m[0] for m in found] == [[1], Linear(1), [2, 3], [4], [1]]
    assert [rows for _, rows in told] == [1]
    assert read("rows", 1)[1][0][0].endswith("tuples of values; got 1 (int)")
    assert read("rows", pa.table({"ts": [1]}))[1] == [
        ("source 'in': there must be a column 'key'; got ts", 1)
    ]


def test_maps_of_msgpack() -> None:
    whole = msgpack.packb({"ts": 1, "key": "a", "n": 2, "more": [1]})
    several = msgpack.packb([{"ts": 2}, {"ts": 3, "key": b"5"}]) + msgpack.packb({"ts": "4", "n": "nan"})
    bound = msgpack.packb({"punctuation": {"groups": {"key": ["a"]}, "below": [4]}})
    found, told = read("msgpack", [whole, msgpack.packb({"punctuation": {"below": 1}}), several], bound)
    assert told == []
    assert found[:2] == [[[1], ["a"], [2.0]], Linear(1)]
    assert found[2][:2] == [[2, 3, 4], [None, "5", None]]
    assert found[3] == GroupWise.of({"key": ["a"]}, [4])


def test_msgpack_that_cannot_be_read_is_left_out_row_by_row() -> None:
    rows = [
        {"ts": 1},
        {"ts": 1.5},
        {"ts": 2**63},
        {"ts": [1]},
        {"ts": True},
        {"n": 1},
        {"ts": 2, "key": {"a": 1}},
    ]
    data = [
        *map(msgpack.packb, rows),
        b"\xc1",
        whole := msgpack.packb({"ts": 9, "key": "zz"}),
        whole[:-1],
        b"",
        b"\x05",
    ]
    found, told = read(
        "msgpack", [*data, msgpack.packb({"punctuation": {"below": 1.5}}), msgpack.packb({"ts": 3})]
    )
    assert found == [[[1, 9], [None, "zz"], [None, None]], [[3], [None], [None]]]
    assert sum(rows for _, rows in told) == 11
    reasons = " | ".join(reason for reason, _ in told)
    for part in (
        "cannot read 1.5 as int64",
        "cannot read 9223372036854775808",
        "cannot read [1] as int64",
        "key: cannot read {'a': 1} as string",
        "cannot read True as int64",
        "ts is null",
        "it is cut off behind byte",
        "a map a row; got [5]",
    ):
        assert part in reasons, part


def test_punctuation_and_wrong_columns_of_arrow() -> None:
    def stream(columns: dict[str, Any], *bounds: int) -> bytes:
        table, sink = pa.record_batch(columns), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_batch(table)
            for bound in bounds:
                packed = b64encode(msgpack.packb(["linear", bound]))
                writer.write_batch(table.slice(0, 0), custom_metadata={b"oop_engine.promise": packed})
        return bytes(sink.getvalue())

    good = {"ts": pa.array([1, None]), "key": pa.array(["a", "b"], pa.string_view()), "n": [1, 2]}
    wrong = (
        stream({"ts": ["1", "x"], "key": ["a", "b"]}),
        stream({**good, "ts": pa.array([1, 2], pa.date32())}),
    )
    found, told = read("arrow", [stream(good, 1), *wrong, stream({**good, "n": ["1", "x"]})])
    assert found == [[[1], ["a"], [1.0]], Linear(1), [[1], ["a"], [1.0]]]
    assert [rows for _, rows in told] == [1, 1, 1, 1]
    assert "no column 'n'" in told[1][0] or "no column 'n'" in told[0][0]


ROWS = Schema(
    {"ts": pa.timestamp("ms", "UTC"),
     "key": pa.dictionary(pa.int32(), pa.string()), "n": pa.float64(),
     "day": pa.date32(), "ok": pa.bool_(), "at": pa.time64("us"),
     "local": pa.timestamp("ns"), "big": pa.uint64()}, "ts",
)  # fmt: skip


@pytest.mark.parametrize("name", PAYLOADS)
def test_what_a_sink_sends_a_source_reads(name: str) -> None:
    ts = pa.array([-1, 0, 1_700_000_000_123], pa.int64())
    page = Page.of(
        ROWS,
        {"ts": ts.cast(ROWS.type_of("ts")), "key": ['a,"\nä', "", None], "n": [float("nan"), 1e300, None],
         "day": [date(2020, 2, 29), None, date(1969, 1, 1)], "ok": [True, None, False],
         "at": pa.array([1, None, 86_399_999_999], pa.int64()).cast(pa.time64("us")),
         "local": pa.array([1, None, -1], pa.int64()).cast(pa.timestamp("ns")), "big": [2**64 - 1, 0, None]},
    )  # fmt: skip
    told: list[str] = []
    made = MESSAGE_FORMATS[name](ROWS, "source 'in'", lambda reason, record, rows: told.append(reason))
    found = [
        row for m in made.messages(payloads_of(page, name)) if isinstance(m, Page) for row in m.to_pylist()
    ]
    assert told == []
    assert repr(found) == repr(page.to_pylist())


def test_a_format_of_payloads_that_is_not_known_or_has_no_key_is_told() -> None:
    with pytest.raises(GraphError, match="format must be one of jsonl, csv, msgpack, arrow; got 'xml'"):
        check_payloads("sink", "xml")
    with pytest.raises(GraphError, match="has many rows, so it can have no key"):
        check_payloads("sink", "arrow", keyed=True)


def test_random_bytes_and_damaged_messages_are_left_out_with_a_reason() -> None:
    rng = Random(7)
    table = pa.table({"ts": [5, 6], "key": ["a", None], "n": [1.0, 2.0]})
    page = Page.of(SCHEMA, dict(zip(table.column_names, table.columns, strict=True)))
    for name in ("msgpack", "jsonl", "csv"):
        whole = b"".join(payloads_of(page, name))
        data = [rng.randbytes(rng.randrange(40)) for _ in range(100)]
        data += [whole[: rng.randrange(len(whole))] for _ in range(50)]
        for _ in range(200):
            changed = bytearray(whole)
            changed[rng.randrange(len(changed))] = rng.choice([0, 0xC1, 0xDD, 0xDF, 0xFF, rng.randrange(256)])
            data.append(bytes(changed))
        found, told = read(name, *([each] for each in data))
        assert told, name
        assert all(len(reason) < 400 for reason, _ in told)
        assert all(isinstance(m, list | Linear) for m in found)


def test_a_row_of_a_moment_that_python_cannot_name_is_told() -> None:
    far = pa.record_batch({"at": pa.array([2**62], pa.int64()).cast(pa.timestamp("ms")), "n": [1]})
    assert "4611686018427387904" in shown(far) or "out of range" in shown(far)
