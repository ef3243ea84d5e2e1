from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.studies.sizes import held_bytes
from oop_engine.core.snapshot import pack, unpack
from oop_engine.extend import GroupIndex
from oop_engine.operators.kernels.texts.table import BLOCK
from oop_engine.operators.keys.tables import IN_KERNELS
from oop_engine.operators.keys.text_table import TextTable

CODED = pa.dictionary(pa.int32(), pa.string())
KINDS = [
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.string_view(),
    pa.binary_view(),
    CODED,
    pa.dictionary(pa.int64(), pa.large_string()),
    pa.dictionary(pa.int16(), pa.string()),
]
ALIKE = [
    "",
    "\0",
    "\0\0",
    "a",
    "a\0",
    "ä",
    "漢",
    *("x" * n for n in (7, 8, 9, 14, 15, 16, 17, 23, 24, 25, 100)),
]
ALIKE += [text[:-1] + "y" for text in ALIKE if len(text) > 6] + [
    "y" + text[1:] for text in ALIKE if len(text) > 6
]
TEXT = st.none() | st.sampled_from(ALIKE) | st.text(max_size=20)


def column(texts: Sequence[str | None], kind: pa.DataType) -> pa.Array:
    """Return a slice, with other texts before and behind it."""
    whole = pa.array(["before", *texts, None])
    if pa.types.is_dictionary(kind):
        coded = whole.cast(kind.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(coded.indices.cast(kind.index_type), coded.dictionary).slice(
            1, len(texts)
        )
    return whole.cast(kind).slice(1, len(texts))


def expected(texts: list[str | None], known: dict[str | None, int], *, add: bool) -> list[int]:
    return [known.setdefault(text, len(known)) if add else known.get(text, -1) for text in texts]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(pages=st.lists(st.lists(TEXT, max_size=30), max_size=6))
def test_codes_are_those_of_a_dictionary(kind: pa.DataType, pages: list[list[str | None]]) -> None:
    table, known = TextTable(kind.value_type if pa.types.is_dictionary(kind) else kind), {}  # type: ignore[var-annotated]
    for texts in pages:
        page = column(texts, kind)
        assert table.encode(page, add=False).tolist() == expected(texts, known, add=False)
        codes = table.encode(page, add=True)
        assert codes.tolist() == expected(texts, known, add=True)
        assert len(table) == len(known)
        if not (pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)):
            again = table.values(codes, kind)
            again.validate(full=True)
            assert again.type == kind
            assert again.to_pylist() == page.to_pylist()
    for texts in pages:
        assert table.encode(column(texts, kind), add=False).tolist() == expected(texts, known, add=False)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), CODED], ids=str)
def test_pages_larger_than_every_constant(kind: pa.DataType) -> None:
    rng = np.random.default_rng(7)
    table, known = TextTable(kind.value_type if pa.types.is_dictionary(kind) else kind), {}  # type: ignore[var-annotated]
    for rows, keys in [(BLOCK - 1, 3), (BLOCK * 5 + 1, 400), (70_000, 50_000), (BLOCK, 50_000)]:
        numbers = rng.integers(0, keys, rows).tolist()
        texts = [None if n == 1 else "key " * (n % 9) + str(n) for n in numbers]
        assert table.encode(column(texts, kind), add=True).tolist() == expected(texts, known, add=True)
    assert table.values(np.arange(len(table)), pa.large_string()).to_pylist() == [*known]


def test_texts_at_the_very_end_of_their_buffer_are_read_no_further() -> None:
    texts = ["12345678", "x" * 9, "123456789012345", "", "y" * 16, "z" * 31, "end"]
    for stop in range(1, len(texts) + 1):
        data = "".join(texts[:stop]).encode()
        ends = np.cumsum([0, *map(len, texts[:stop])]).astype(np.int32)
        page = pa.StringArray.from_buffers(stop, pa.py_buffer(ends), pa.py_buffer(data))
        table = TextTable(pa.string())
        assert table.encode(page, add=True).tolist() == list(range(stop))
        assert table.values(np.arange(stop), pa.string()).to_pylist() == texts[:stop]


def test_only_texts_of_a_dictionary_that_occur_are_learnt() -> None:
    page = pa.array(["never", "a", "b", "a"]).dictionary_encode().slice(1)
    table = TextTable(pa.string())
    assert table.encode(page, add=True).tolist() == [0, 1, 0]
    assert table.encode(page.slice(1), add=True).tolist() == [1, 0]
    assert len(table) == 2


def test_values_of_another_type_are_not_found() -> None:
    table = TextTable(pa.string())
    table.encode(pa.array(["1", None]), add=True)
    for other in (pa.array([1, None]), pa.array([b"1", None]), pa.array([1.0, None])):
        assert table.encode(other, add=False).tolist() == [-1, 1]
    with pytest.raises(TypeError, match="keys must be texts; got int64"):
        table.encode(pa.array([1]), add=True)


@given(
    pages=st.lists(st.lists(st.tuples(TEXT, st.none() | st.integers(-3, 3), TEXT), max_size=20), max_size=5),
    every=st.integers(1, 4),
)
def test_groups_of_texts_and_numbers_stay_themselves(
    pages: list[list[tuple[str | None, int | None, str | None]]], every: int
) -> None:
    kinds = [pa.string(), pa.int16(), CODED]
    index, known = GroupIndex(kinds, IN_KERNELS), dict[tuple[str | None, int | None, str | None], int]()
    for rows in pages:
        columns = columns_of(rows)
        assert index.encode(columns).tolist() == [known.setdefault(row, len(known)) for row in rows]
    assert rows_of(index) == [*known]
    kept = np.arange(0, len(index), every)
    index.keep(kept)
    loaded = GroupIndex(kinds, IN_KERNELS)
    loaded.load(unpack("test", pack("test", index.save())))
    assert rows_of(index) == rows_of(loaded) == [*known][::every]
    for rows in pages:
        places = [known[row] for row in rows]
        slots = [-1 if place % every else place // every for place in places]
        assert index.find(columns_of(rows)).tolist() == loaded.find(columns_of(rows)).tolist() == slots


def columns_of(rows: list[tuple[str | None, int | None, str | None]]) -> list[pa.Array]:
    first, second, third = ([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])
    return [column(first, pa.string()), pa.array(second, pa.int16()), column(third, CODED)]


def rows_of(index: GroupIndex) -> list[tuple[str | None, int | None, str | None]]:
    return list(zip(*(each.to_pylist() for each in index.keys(np.arange(len(index)))), strict=True))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), CODED], ids=str)
def test_texts_that_turn_over_leave_nothing(kind: pa.DataType) -> None:
    index = GroupIndex([kind], IN_KERNELS)
    most = 0
    for turn in range(20):
        texts = [f"{turn:2} and a longer text, {n}" for n in range(1000)]
        index.encode([column(texts, kind)])
        told, held = index.nbytes, held_bytes([index])
        assert 0.9 * held - 2048 <= told <= 1.1 * held
        most = max(most, told) if turn < 2 else most
        assert told <= most
        index.keep(np.arange(len(index) - 500, len(index)))
    assert len(index) == 500


def test_a_few_names_take_little() -> None:
    table = TextTable(pa.string())
    table.encode(pa.array(["UA", "US", "VX", "WN", "YV"]), add=True)
    assert table.nbytes <= 1024


def test_a_dictionary_that_is_made_anew_is_known_by_its_bytes() -> None:
    table, first = TextTable(pa.string()), pa.array(["a", "b", "a"]).dictionary_encode()
    codes = table.encode(first, add=True)
    looked_up = table._seen
    anew = pa.DictionaryArray.from_arrays(first.indices, pa.array(["a", "b"]))
    assert table.encode(anew, add=True).tolist() == codes.tolist()
    assert table._seen is looked_up
    other = pa.DictionaryArray.from_arrays(first.indices, pa.array(["b", "a"]))  # as many bytes, others
    assert table.encode(other, add=True).tolist() == [1, 0, 1]
