"""Keys of a join: equal where they lie as their values are, and of one code they are told apart."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import Linear, Page, Schema
from oop_engine.operators import Band, OAJoin
from oop_engine.operators.keys.key_codes import KeyCodes
from oop_engine.testing import END, Driver, multiset

WORDS = [
    "",
    "a",
    "ab",
    "a longer word, of more than eight bytes",
    "a longer word, of more than eight bytes!",
    "ä",
]
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-1, 0, 7],
    pa.uint64(): [0, 2**64 - 1, 2**63],
    pa.date32(): [dt.date(1969, 12, 31), dt.date(2020, 1, 1)],
    pa.timestamp("us", "UTC"): [0, 1, -1],
    pa.duration("ms"): [0, 5],
    pa.string(): WORDS,
    pa.large_string(): WORDS,
    pa.binary(): [word.encode() for word in WORDS],
}
LINK = Schema({"ts": pa.int64(), "host": pa.string(), "port": pa.int32(), "n": pa.int64()}, "ts", "s")


@given(st.data(), st.sampled_from(list(VALUES)), st.integers(0, 3), st.integers(0, 3))
def test_keys_are_equal_in_place_where_their_values_are(
    data: st.DataObject, kind: pa.DataType, begin: int, other_begin: int
) -> None:
    some = st.lists(st.sampled_from(VALUES[kind]), min_size=4, max_size=9)
    left, right = (pa.array(data.draw(some), kind)[start:] for start in (begin, other_begin))
    rows, of = (np.tile(np.arange(len(side), dtype=np.int32), 2) for side in (left, right))
    pairs = min(len(rows), len(of))
    rows, of = rows[:pairs].copy(), of[:pairs][::-1].copy()
    codes, same = KeyCodes([kind]), np.ones(pairs, np.bool_)
    assert codes.in_place
    codes.equal_at(codes.flat([left]), rows, codes.flat([right]), of, same)
    expected = [left[int(a)].as_py() == right[int(b)].as_py() for a, b in zip(rows, of, strict=True)]
    assert same.tolist() == expected


@pytest.mark.parametrize(
    "kind",
    [
        pa.float64(),
        pa.bool_(),
        pa.decimal128(9, 2),
        pa.dictionary(pa.int8(), pa.string()),
        pa.list_(pa.int8()),
    ],
)
def test_other_keys_are_not_compared_in_place(kind: pa.DataType) -> None:
    """One NaN equals another, minus zero is zero, and the same text has another number in another dictionary."""
    assert not KeyCodes([pa.string(), kind]).in_place


def rows_of(kind: str, keys: list[tuple[str, str]], rng: np.random.Generator) -> Any:
    driver = Driver(OAJoin(keys, Band(3, 3), how=kind), LINK, LINK)
    for start in range(0, 30, 5):
        for port in (0, 1):
            columns = {
                "ts": start + rng.integers(0, 5, 12),
                "host": [WORDS[n] for n in rng.integers(0, 4, 12)],
                "port": rng.integers(0, 2, 12),
                "n": rng.integers(0, 99, 12),
            }
            driver.feed(port, Page.of(LINK, columns))
        for port in (0, 1):
            driver.feed(port, Linear(start))
    for port in (0, 1):
        driver.feed(port, END)
    return multiset(driver.rows())


@pytest.mark.parametrize("kind", ["inner", "left", "full", "semi", "anti"])
def test_keys_of_one_code_are_told_apart(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [("host", "host"), ("port", "port")]
    expected = rows_of(kind, keys, np.random.default_rng(3))
    monkeypatch.setattr(KeyCodes, "of", lambda self, columns, rows, source=0: np.zeros(rows, np.int64))
    assert rows_of(kind, keys, np.random.default_rng(3)) == expected
    assert expected
