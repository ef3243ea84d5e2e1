"""Keys of JSON: found in the bytes of many lines as they are by reading each line."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from oop_engine.traces.formats.json_keys import LONGEST, keys_of
from oop_engine.traces.formats.json_rows import line_by_line, rows_of

TRICKY = st.text(st.sampled_from('ab":{}[],\\ \u00e4\u20ac\t/'), max_size=6)
VALUES = st.recursive(
    st.one_of(TRICKY, st.integers(-5, 5), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TRICKY, inner, max_size=2)),
    max_leaves=4,
)
ROWS = st.lists(st.dictionaries(st.one_of(TRICKY, st.just("ts")), VALUES, max_size=4), min_size=1, max_size=6)
SPACED = st.sampled_from([(",", ":"), (" , ", "\t: "), (",  ", " :")])


@given(ROWS, SPACED, st.booleans())
def test_the_keys_are_those_of_the_rows(rows: list[Any], spaces: tuple[str, str], ascii: bool) -> None:
    lines = "\n".join(json.dumps(row, separators=spaces, ensure_ascii=ascii) for row in rows).encode()
    found: Counter[str] = Counter()
    for name, count in keys_of(lines):
        found[name] += count
    assert found == Counter(name for row in rows for name in row)


@given(ROWS, st.integers(1, 80))
def test_others_are_counted_however_lines_are_read(rows: list[Any], times: int) -> None:
    rows = [{**row, "ts": at} for at, row in enumerate(rows)] * times
    lines = "\n".join(map(json.dumps, rows)).encode()
    columns = pa.schema({"ts": pa.int64()})
    found: list[Counter[str]] = []
    for read in (rows_of, line_by_line):
        counts: Counter[str] = Counter()

        def other(name: str, count: int, counts: Counter[str] = counts) -> None:
            counts[name] += count

        assert sum(batch.num_rows for batch in read(lines, columns, other)) == len(rows)
        del counts["ts"]
        found.append(counts)
    assert found[0] == found[1] == Counter(name for row in rows for name in row if name != "ts")


def test_a_long_name_is_cut() -> None:
    assert dict(keys_of(json.dumps({"x" * 1000: 1}).encode())) == {"x" * LONGEST: 1}


def test_a_hostile_block_takes_time_in_proportion() -> None:
    many = b"\n".join(b'{"%d": 1,"%s" %s: 2}' % (i, b"n" * (i % 900), b" " * (i % 50)) for i in range(2000))
    spaces = b'{"x"' + b" " * 1_000_000 + b":1}"
    began = time.process_time()
    assert sum(count for _, count in keys_of(many)) == 4000
    assert [*keys_of(spaces)] == [("x", 1)]
    assert time.process_time() - began < 2  # seconds; some hundredths
