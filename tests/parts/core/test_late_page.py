"""A row of numbers that is packed is the page that ``Page.of`` makes of it, and Arrow judges all else."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import ContractError, Page, Schema
from oop_engine.core.late.late_page import FEW, packed_rows
from oop_engine.core.page import concat

UTC = pa.timestamp("ms", "UTC")
SCHEMAS = [
    Schema({"ts": pa.int64()}, "ts", "s"),
    Schema({"k": pa.int32(), "ts": pa.int64(), "v": pa.float64()}, "ts", "s"),
    Schema(
        {"k": pa.int32(), "j": pa.int32(), "ts": pa.int32(), "l": pa.int32(), "v": pa.float64()}, "ts", "s"
    ),
    Schema({"v": pa.float64(), "at": pa.int64(), "k": pa.int32(), "n": pa.int64()}, "at", "ms"),
]


def row_of(schema: Schema, number: int = 0) -> list[Any]:
    kinds = enumerate(schema.fields.types)
    return [number + 0.5 if kind == pa.float64() else number + 7 + place for place, kind in kinds]


def both(schema: Schema, many: int = 1) -> tuple[Page, Page]:
    rows = [row_of(schema, number) for number in range(many)]
    packed = packed_rows(schema, rows)
    assert packed is not None
    return packed, Page.of(schema, dict(zip(schema.names, zip(*rows, strict=True), strict=True)))


@pytest.mark.parametrize("many", [1, 2, 3, FEW])
@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_packed_rows_are_the_page_of_their_values(schema: Schema, many: int) -> None:
    packed, page = both(schema, many)
    assert packed.times.dtype == np.int64
    assert packed.times.tolist() == page.times.tolist()
    for name in schema.names:
        ours, theirs = packed.numbers(name), page.numbers(name)
        assert ours is not None
        assert theirs is not None
        assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist())
        assert ours.flags.aligned
        assert not ours.flags.writeable
        assert packed.column(name).equals(page.column(name))
    assert (len(packed), packed.whole, packed.arrival) == (many, True, None)
    assert packed == page
    assert packed.batch.validate(full=True) is None
    assert packed.times.tolist() == page.times.tolist()  # also when all columns are there


@pytest.mark.parametrize("many", [1, 3])
@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_what_is_made_of_packed_rows_is_what_is_made_of_a_page(schema: Schema, many: int) -> None:
    for make in (
        lambda page: page.slice(0, 1),
        lambda page: page.slice(1, 1),
        lambda page: page.filter(np.arange(len(page)) != 1),
        lambda page: page.take(np.array([0, 0])),
        lambda page: concat(schema, [page, page]),
        lambda page: page.settled(),
        lambda page: page.owned(),
        lambda page: page.without_arrival(),
        lambda page: pickle.loads(pickle.dumps(page)),
    ):
        packed, page = both(schema, many)
        found: Page = make(packed)  # type: ignore[no-untyped-call]
        assert found == make(page)  # type: ignore[no-untyped-call]
        assert found.times.tolist() == make(page).times.tolist()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("value", [None, True, 1.0, "1", 2**63, np.int64(1)])
def test_arrow_judges_all_but_plain_numbers(value: Any) -> None:
    schema = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
    assert packed_rows(schema, [[1, 1]]) is not None
    assert packed_rows(schema, [[1, value]]) is None
    assert packed_rows(schema, [[1, 1], [1, value]]) is None
    assert packed_rows(schema, [[1]]) is None
    assert packed_rows(Schema({"ts": pa.int64(), "k": pa.int32()}, "ts", "s"), [[1, 2**31]]) is None


def test_rows_of_several_lengths_none_and_very_many_are_not_packed() -> None:
    schema = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
    assert packed_rows(schema, []) is None
    assert packed_rows(schema, [[1, 1], [1]]) is None
    assert packed_rows(schema, [[1], [1]]) is None
    assert packed_rows(schema, [[1, 1, 1], [1, 1, 1]]) is None
    assert packed_rows(schema, [[1, 1]] * (FEW + 1)) is None


def test_a_schema_with_a_column_of_texts_packs_no_row() -> None:
    assert packed_rows(Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s"), [[1, "a"]]) is None


def test_numbers_are_those_of_columns_without_nulls() -> None:
    schema = Schema({"ts": pa.int64(), "k": pa.int64(), "w": pa.string()}, "ts", "s")
    page = Page.of(schema, {"ts": [1, 2], "k": [1, None], "w": ["a", "b"]})
    assert page.numbers("k") is None
    assert page.numbers("w") is None
    assert page.slice(0, 1).numbers("ts").tolist() == [1]  # type: ignore[union-attr]
    assert not page.whole
    with pytest.raises(ContractError):
        Page.of(schema, {"ts": [None], "k": [1], "w": ["a"]})
