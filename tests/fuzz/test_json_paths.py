"""JSON lines: what Arrow reads at once, and what is read line by line, are the same rows, and refused alike."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import open_trace
from oop_engine.core.errors import TraceError
from oop_engine.core.schema import Schema
from oop_engine.core.values.arrays import converted
from oop_engine.core.values.text_patterns import unreadable
from oop_engine.traces.formats import json_rows
from tests.fuzz import SCALE
from tests.fuzz.mutants import WORDS

MANY = settings(max_examples=100 * SCALE, deadline=None, derandomize=SCALE == 1)
KINDS = [
    pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(),
    pa.date32(), pa.time32("s"), pa.time64("us"), pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"),
    pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Berlin"),
]  # fmt: skip
TEXTS = [
    "", "a", "NA", "null", "5", "-7", "007", "1.5", "true", "False", "nan", "2013-01-01", "2013-02-29", "2012-02-29",
    "05:00", "05:00:00", "05:00:00.5", "2013-01-01T05", "2013-01-01 05:00", "2013-01-01T05:00:00", "2013-01-01T05:00Z",
    "2013-01-01T05:00:00.123456Z", "2013-01-01T06:00:00+01:00", "2013-01-01T05:00:00-0130", " 2013-01-01T05:00Z ",
    "2013-01-01Z", "9999-12-31", "0x1F", "9" * 20, "\U0001f600", "é",
]  # fmt: skip
PLAIN = st.sampled_from(
    [*(f'"{text}"' for text in TEXTS), "1", "-1", "0", "-0", "300", "1.5", "2.0", "1e3", "1e-400", "NaN", "Infinity",
     "true", "false", "null", "9223372036854775807", "18446744073709551615", "[1]", "{}", '{"v": [{"v": 1}]}',
     '"\\ud800"', '"\\n"', "[" * 70 + "]" * 70, "01", "+1", ".5", "'a'", ""]
)  # fmt: skip
PIECES = [b'{"ts": 1}', b'{"ts": 2, "v": "x"}\n', b"{", b"}", b"\n", b'"ts"', b":", b"1"]
FIRST = st.sampled_from([b"", b'{"ts": 1}\n', b'{"ts": 1}'])
DIGITS = st.text("-+0123456789.:eTZx ", max_size=22)
QUOTED = st.sampled_from([f'"{text}"' for text in TEXTS])
MORE = st.sampled_from([*[""] * 100, *(word.decode("latin1") for word in WORDS), ', "v": 2', ', "w": 3'])
LINES = st.lists(st.tuples(PLAIN, MORE), min_size=1, max_size=6) | st.lists(
    st.tuples(QUOTED, st.just("")), min_size=1, max_size=3
)


def both(path: Path, schema: Schema | None) -> tuple[object, object]:
    """Return the rows and what was refused: as it is, and line by line."""

    def found() -> object:
        try:
            trace = open_trace(path, schema) if schema else open_trace(path, time="ts", unit="s")
            pages = [page.batch for page in trace.pages()]
            return repr(
                [[column.cast(pa.string()).to_pylist() for column in page.columns] for page in pages]
            ), trace.refused
        except TraceError as error:
            return str(error)

    one = found()
    with patch.object(json_rows, "_at_once", lambda *lines: None):
        return one, found()


@MANY
@given(st.sampled_from(KINDS), LINES, st.booleans())
def test_both_ways_give_the_same(tmp_path_factory, kind, lines, known):
    path = tmp_path_factory.getbasetemp() / "both.jsonl"
    said = (f'{{"ts": {i}, "v": {value}{more}}}\n' for i, (value, more) in enumerate(lines))
    path.write_bytes("".join(said).encode("latin1", "replace"))
    one, other = both(path, Schema({"ts": pa.int64(), "v": kind}, "ts", "s") if known else None)
    assert one == other


@MANY
@given(FIRST, st.lists(st.sampled_from([*WORDS, *PIECES]), max_size=8))
def test_both_ways_take_apart_the_same(tmp_path_factory, first, words):
    path = tmp_path_factory.getbasetemp() / "words.jsonl"
    path.write_bytes(first + b"".join(words) + b"\n")
    one, other = both(path, Schema({"ts": pa.int64(), "v": pa.string()}, "ts", "s"))
    assert one == other


@pytest.mark.parametrize("kind", [None, pa.timestamp("us", "UTC"), pa.timestamp("s", "UTC")], ids=str)
def test_one_bad_row_refuses_no_other(tmp_path, kind):
    times = ["2013-01-01T00:00:00Z", "2013-01-01T01:00:00+01:00", "2013-01-01 00:00:00"]
    rows = [f'{{"ts": "{times[i % 3]}", "v": {i}}}\n' for i in range(3000)]
    schema = None if kind is None else Schema({"ts": kind, "v": pa.int64()}, "ts")
    for bad in ([], ["garbage\n"]):
        path = tmp_path / f"{len(bad)}.jsonl"
        path.write_text("".join([*rows[:2000], *bad, *rows[2000:]]))
        trace = open_trace(path, schema, time=None if schema else "ts")
        assert sum(map(len, trace.pages())) == 3000
        assert trace.refused == ({"the line is no JSON object": 1} if bad else {})


@MANY
@given(st.sampled_from(KINDS), st.lists(st.sampled_from(TEXTS) | DIGITS, max_size=20))
def test_a_pattern_never_refuses_what_can_be_read(kind, texts):
    distinct = pa.array(sorted(set(texts)), pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_time(kind):
        return
    for text, lost in zip(distinct, unreadable(distinct, kind).to_pylist(), strict=True):
        one = pa.array([text.as_py()], pa.string())
        try:
            one.cast(kind)
        except pa.ArrowInvalid:
            continue
        assert not lost, f"{text} can be read as {kind}"


@MANY
@given(st.sampled_from(KINDS), st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12))
def test_a_column_is_read_as_its_values_are(kind, texts):
    together, bad = converted(pa.array(texts, pa.string()), kind)
    for i, text in enumerate(texts):
        alone, worse = converted(pa.array([text], pa.string()), kind)
        assert repr(alone[0]) == repr(together[i])
        assert bool(bad is not None and bad[i].as_py()) == bool(worse is not None and worse[0].as_py())


@pytest.mark.parametrize(
    "text", ["2013-01-01", "2013-01-01T05:00", "2013-01-01T05:00Z", "2013-01-01T06:00:00.5+01:00"]
)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_both_ways_read_times_the_same(tmp_path, kind, text):
    path = tmp_path / "times.jsonl"
    path.write_text(f'{{"ts": 1, "v": "{text}"}}\n')
    one, other = both(path, Schema({"ts": pa.int64(), "v": kind}, "ts", "s"))
    assert one == other
