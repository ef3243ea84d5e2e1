from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.join_side.key_codes import KeyCodes
from tests.oop_engine.test_groups import VALUES

MANY = [pa.array([f"10.{i}.7" for i in range(300)]).slice(0, 200), pa.array(range(300, 500))]


def values_of(name: str) -> tuple[pa.DataType, pa.Array]:
    kind, values = VALUES[name]
    return kind, pa.array([*values, *values], kind)


def same(a: Any, b: Any) -> bool:
    return a == b or (a != a and b != b) or repr(a) == repr(b)


@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("null", "list", "struct")])
def test_equal_keys_have_equal_codes_and_others_others(name: str) -> None:
    kind, column = values_of(name)
    codes = KeyCodes([kind])
    found, values = codes.of([column], len(column)), column.to_pylist()
    for i, k in product(range(len(column)), repeat=2):
        equal = same(values[i], values[k])
        assert (found[i] == found[k]) == equal
        assert codes.equal([column.slice(i, 1)], [column.slice(k, 1)]).tolist() == [equal]


@pytest.mark.parametrize(
    ("types", "exact"),
    [
        ([], True),
        ([pa.int8()], True),
        ([pa.float64()], True),
        ([pa.timestamp("us")], True),
        ([pa.dictionary(pa.int8(), pa.int64())], True),
        ([pa.string()], False),
        ([pa.int64(), pa.int64()], False),
        ([pa.dictionary(pa.int8(), pa.string())], False),
    ],
    ids=str,
)
def test_only_a_single_column_of_integers_is_its_own_code(types: list[pa.DataType], exact: bool) -> None:
    assert KeyCodes(types).exact == exact


def test_slices_have_the_codes_of_the_whole() -> None:
    codes = KeyCodes([column.type for column in MANY])
    whole = codes.of(MANY, 200)
    part = codes.of([column.slice(70, 60) for column in MANY], 60)
    assert part.tolist() == whole[70:130].tolist()
    assert len(set(whole.tolist())) == 200


def test_a_dictionary_has_the_codes_of_its_values_whatever_their_order() -> None:
    text = pa.array(["b", "a", "c", "a"])
    codes = KeyCodes([pa.dictionary(pa.int32(), pa.string())])
    plain = codes.of([text], 4).tolist()
    assert codes.of([text.dictionary_encode()], 4).tolist() == plain
    assert codes.of([text.dictionary_encode()], 4).tolist() == plain
    other = pa.DictionaryArray.from_arrays(pa.array([2, 1, 0, 1], pa.int32()), pa.array(["c", "a", "b"]))
    assert codes.of([other], 4).tolist() == plain


def test_columns_are_not_mixed_up() -> None:
    codes = KeyCodes([pa.string(), pa.string()])
    found = codes.of([pa.array(["a", "ab", "b"]), pa.array(["bc", "c", "a"])], 3)
    assert len(set(found.tolist())) == 3


@pytest.mark.parametrize("words", range(1, 40))
def test_every_byte_counts(words: int) -> None:
    text = ["x" * i + "y" + "x" * (words - i - 1) for i in range(words)]
    assert len(np.unique(KeyCodes([pa.string()]).of([pa.array(text)], words))) == words
