"""Text that Parquet stores as codes is read as codes, and means what it means as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import Page, Schema, open_trace
from oop_engine.core.late.coded_page import CodedPage
from oop_engine.traces.formats import parquet

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int32(), "t": pa.string()}, "ts", "s")
TEXTS = [b"a", b"ab", b"", "ü".encode(), b"x" * 40, b"\xff", None]
ROWS = st.lists(
    st.tuples(
        st.integers(0, 9) | st.none(),
        st.sampled_from(TEXTS),
        st.sampled_from([1, 2**40]),
        st.sampled_from(TEXTS),
    ),
    max_size=30,
)


def texts(values: list[bytes | None]) -> pa.Array:
    """Return texts of which some are no UTF-8."""
    column = pa.array(values, pa.binary())
    return pa.StringArray.from_buffers(
        len(column), column.buffers()[1], column.buffers()[2], column.buffers()[0]
    )


def as_bytes(row: dict[str, Any]) -> str:
    """Return a row in words; a page that has text which is no UTF-8 is refused in bytes."""
    return repr([value.encode() if isinstance(value, str) else value for value in row.values()])


def found(path: Path, most: int, schema: Schema | None, page_rows: int) -> tuple[list[Any], bool]:
    """Return what is read where texts of at most so many bytes a value are read as codes, and whether some were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_CODE_BYTES", most)
        refused = list[Any]()
        trace = open_trace(
            path, schema, time=None if schema else "ts", unit=None if schema else "s", page_rows=page_rows,
            on_refused=lambda *given: refused.append(given),
        )  # fmt: skip
        pages = [message for message in trace if isinstance(message, Page)]
        rows = [row for page in pages for row in page.to_pylist()]
        types = {str(page.batch.schema) for page in pages}
        buried = sorted((reason, as_bytes(row)) for _, some, reason in refused for row in some.to_pylist())
        coded = any(isinstance(page, CodedPage) for page in pages)
        return [rows, types, trace.refused, trace.nulls, buried, trace.schema], coded


@pytest.mark.parametrize("given_schema", [True, False], ids=["schema", "own"])
@given(rows=ROWS, groups=st.integers(1, 9), page_rows=st.integers(1, 9), limit=st.sampled_from([1, 1 << 20]))
def test_codes_are_read_as_texts_are(
    tmp_path_factory: pytest.TempPathFactory,
    given_schema: bool,
    rows: list[Any],
    groups: int,
    page_rows: int,
    limit: int,
) -> None:
    path = tmp_path_factory.mktemp("codes") / "t.parquet"
    times, keys, values, others = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    columns = {
        "ts": pa.array(times, pa.int64()),
        "k": texts(keys),
        "v": pa.array(values, pa.int64()),
        "t": texts(others),
    }
    pq.write_table(pa.table(columns), path, row_group_size=groups, dictionary_pagesize_limit=limit)
    schema = SCHEMA if given_schema else None
    plain, none = found(path, 0, schema, page_rows)
    coded, _ = found(path, 1 << 30, schema, page_rows)
    assert not none
    assert coded == plain


def test_texts_of_few_bytes_a_row_are_read_as_codes(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    many = 5_000
    columns = {"ts": range(many), "few": ["a", "b"] * (many // 2), "own": [f"text {n}" for n in range(many)]}
    pq.write_table(pa.table(columns), path)
    [page] = open_trace(path, time="ts", unit="s").pages()
    assert pa.types.is_dictionary(page.key("few").type)
    assert page.key("own").type == pa.string()
    assert page.to_pylist()[-1] == {"ts": 4_999, "few": "b", "own": "text 4999"}
    [page] = open_trace(path, Schema({"ts": pa.int64(), "few": pa.large_string()}, "ts", "s")).pages()
    assert page.key("few").type == pa.large_string()
