"""Formats of messages: pages and punctuation of what can be read, and a reason for each row that cannot."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from oop_engine import GroupWise, Linear, Page, Schema, UsageError
from oop_engine.connectors.message_format import MESSAGE_FORMATS

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


def test_arrow_streams() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"more": [1], "ts": [5], "key": ["a"], "n": [1.0]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    whole = sink.getvalue().to_pybytes()
    found, told = read("arrow", [whole, b"no", whole[:50]], whole)
    assert found == [[[5], ["a"], [1.0]]] * 2
    assert [rows for _, rows in told] == [1, 1]


def test_rows_of_python() -> None:
    page = Page.of(SCHEMA, {"ts": [1], "key": ["a"], "n": [1.0]})
    rows = [{"ts": 2}, {"ts": "x"}, {"ts": 3, "key": "b"}]
    found, told = read("rows", page, Linear(1), rows, pa.table({"ts": [4], "key": ["a"], "n": [1.0]}), [page])
    assert [m if m == Linear(1) else m[0] for m in found] == [[1], Linear(1), [2], [3], [4], [1]]
    assert [rows for _, rows in told] == [1]
    with pytest.raises(UsageError, match="got int"):
        read("rows", 1)
