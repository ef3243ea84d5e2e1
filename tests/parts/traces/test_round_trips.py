"""Round trips: a schema that a format writes, it reads, for all types and formats, compressed or not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Page, Schema, open_trace, write_trace
from oop_engine.errors import TraceError

KINDS = [
    pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.date32(),
    pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.timestamp("s"),
    pa.timestamp("us", "UTC"), pa.timestamp("ms", "Africa/Monrovia"), pa.decimal128(10, 2), pa.null(), pa.binary(),
]  # fmt: skip
SUFFIXES = ["csv", "jsonl", "parquet", "arrow", "msgpack", "csv.gz", "jsonl.zst", "arrow.zst"]
DAY = 86_400


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Return values of a type, as whole numbers where Arrow stores such."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('",;\n\r\0 '), max_size=8)
    if pa.types.is_binary(kind):
        return st.binary(max_size=4)
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width)
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_decimal(kind):
        return st.decimals(-(10**6), 10**6, places=2)
    if pa.types.is_null(kind):
        return st.none()
    if pa.types.is_date64(kind):
        return st.integers(-10_000, 10_000).map(lambda day: day * DAY * 1000)
    return st.integers(0, DAY - 1 if pa.types.is_time(kind) else 100)


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_a_format_reads_what_it_writes_or_refuses_to_write_it(suffix: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    name = data.draw(st.sampled_from(["x", "two\nlines", 'a "quote"', "a,b", "a;b"]))
    given_values = data.draw(st.lists(values_of(kind) | st.none(), min_size=1, max_size=4))
    schema = Schema({"ts": pa.int64(), name: kind}, "ts", "s")
    column = pa.array(given_values, kind)
    page = Page.of(schema, {"ts": list(range(len(column))), name: column})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{suffix}"
        try:
            write_trace(path, schema, [page])
        except TraceError:
            assert not path.exists()
            return
        found = [row for read in open_trace(path, schema).pages() for row in read.to_pylist()]
    assert repr(found) == repr(page.to_pylist())
