"""JSON messages of a few rows of numbers: read by themselves, they are what all rules together make of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Page, Schema
from oop_engine.connectors.formats.json_messages import JsonMessages
from oop_engine.core.late.late_page import FEW

KINDS = [pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.timestamp("us")]
NUMBERS = [
    "0",
    "-0",
    "7",
    "-7",
    "007",
    "300",
    "2147483648",
    "9" * 18,
    "9" * 19,
    "4611686018427387904",
    "-" + "9" * 18,
]
FRACTIONS = [
    "0.5",
    "-0.0",
    "0.1",
    "1e3",
    "123456789012345678.12345678901234567890",
    "1.",
    ".5",
    "NaN",
    "1e400",
]
OTHERS = ["true", "null", '"7"', "[1]", "{}", ""]
VALUES = st.sampled_from(NUMBERS + FRACTIONS + OTHERS)
SPACES = st.sampled_from(["", "", "", " ", "\t", "\n", "\r", "\x0b"])


def read(schema: Schema, data: Any, *, by_rules: bool) -> tuple[list[Any], list[Any]]:
    """The rows of a message, and those refused."""
    refused: list[Any] = []
    messages = JsonMessages(schema, "source", lambda *letter: refused.append(letter))
    if by_rules:
        messages._few._all = False
    pages = [message for message in messages.messages(data) if isinstance(message, Page)]
    return [row for page in pages for row in page.to_pylist()], refused


ROWS = st.tuples(VALUES, VALUES, st.lists(SPACES, min_size=9, max_size=9))


@pytest.mark.slow
@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.sampled_from(KINDS), st.lists(ROWS, min_size=1, max_size=3), st.booleans())
def test_rows_are_what_they_are_by_all_rules(kind: Any, rows: list[Any], payloads: bool) -> None:
    schema = Schema({"ts": pa.int64(), "v": kind}, "ts", "s")
    texts = [
        f'{s[0]}{{{s[1]}"ts"{s[2]}:{s[3]}{ts}{s[4]},{s[5]}"v"{s[6]}:{v}{s[7]}}}{s[8]}'.encode()
        for ts, v, s in rows
    ]
    data = texts if payloads else b"\n".join(texts) + b"\n"
    assert repr(read(schema, data, by_rules=False)) == repr(read(schema, data, by_rules=True))


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
@pytest.mark.parametrize("line", [b'{"ts": 3, "v": 7}\n', b'{"ts":3,"v":7}', b' { "ts" : 3 , "v" : 7 } \r\n'])
def test_a_row_of_numbers_is_read_by_itself(kind: pa.DataType, line: bytes) -> None:
    messages = JsonMessages(Schema({"ts": pa.int64(), "v": kind}, "ts", "s"), "source", lambda *_: None)
    for data in (line, [line]):
        page = messages._few.page(data)
        assert page is not None
        assert page.to_pylist() == [{"ts": 3, "v": 7}]
        assert [page] == list(messages.messages(data))


@pytest.mark.parametrize("many", [2, FEW])
def test_a_few_rows_of_numbers_are_one_page(many: int) -> None:
    messages = JsonMessages(Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s"), "source", lambda *_: None)
    lines = [b'{"ts": %d, "v": 7}' % ts for ts in range(many)]
    for data in (lines, b"\n".join(lines), b"\n".join(lines) + b"\n"):
        page = messages._few.page(data)
        assert page is not None
        assert page.to_pylist() == [{"ts": ts, "v": 7} for ts in range(many)]
        assert [page] == list(messages.messages(data))


@pytest.mark.parametrize(
    "data",
    [
        b'{"v": 7, "ts": 3}\n',
        b'{"ts": 3}\n',
        b'{"ts": 3, "v": 7, "w": 1}\n',
        b'{"ts": 3, "v": 7}\n{"ts": 4}\n',
        b'{"ts": 3, "v": 7}{"ts": 4, "v": 7}\n',
        b'{"ts": 3, "v": 7}\n' * (FEW + 1),
        b'{"punctuation": 5}\n',
        [b'{"ts": 3, "v": 7}\n{"ts": 4, "v": 7}'],
        [b'{"ts": 3, "v": 7}', b""],
        [b'{"ts": 3, "v": 7}'] * (FEW + 1),
        b"",
        [],
    ],
)
def test_all_else_is_left_to_the_rules(data: Any) -> None:
    messages = JsonMessages(Schema({"ts": pa.int64(), "v": pa.int64()}, "ts", "s"), "source", lambda *_: None)
    assert messages._few.page(data) is None
