"""Names of columns of JSON lines, where a schema has their types: the same as those beside guessed types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from oop_engine import Schema, open_trace
from oop_engine.traces.formats.json_lines import JsonReader

HEADS = [
    '{"ts": 1, "host": "a"}\n{"host": "b", "ts": 2, "more": null}\n',
    '{"ts": 1, "v": 1}\n{"ts": 2, "v": "x"}\n',  # Arrow has one type a column
    '{"ts": 1, "v": [1]}\n{"ts": 2}\n',
    '{"ts": [1]}\n{"ts": [2]}\n',
    '{"ts": 1, "v": {"w": 2}}\n',
    '{"ts": 1, "ts": 2}\n{"ts": 3}\n',
    '{"ts": 1}\nno JSON\n{"ts": 2, "late": 1}\n',
    '{"ts": 1, "{": "["}\n',
    '{"ts": "2026-01-01T00:00:00Z", "v": 9999999999999999999999}\n',
    '{"host": "a"}\n',
    '{}\n{"ts": 1}\n',
    "\n\n",
    "{'ts': 1}\n",
]


@pytest.mark.parametrize("head", HEADS)
def test_names_are_the_same_where_no_types_are_guessed(head, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(head)
    assert JsonReader(path, ("ts",), typed=True).fields.names == JsonReader(path, ("ts",)).fields.names


def test_no_types_are_guessed_where_a_schema_has_them(tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError

    path = tmp_path / "a.jsonl"
    path.write_text(HEADS[0])
    schema = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")
    monkeypatch.setattr("oop_engine.traces.formats.json_lines.guessed", refuse)
    [page] = open_trace(path, schema).pages()
    assert page.to_pylist() == [{"ts": 1, "host": "a"}, {"ts": 2, "host": "b"}]
    with pytest.raises(AssertionError):
        open_trace(path, time="ts", unit="s")


def test_files_with_a_mark_may_have_been_put_together(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"ts": 1}\n\xef\xbb\xbf{"ts": 2}\n')
    trace = open_trace(path, time="ts", unit="s")
    assert [row["ts"] for page in trace.pages() for row in page.to_pylist()] == [1, 2]
