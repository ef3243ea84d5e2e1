"""Keys that have the same code by bad luck: they are slow to tell apart, and told apart all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import GroupWise, Linear, Page, Schema
from oop_engine.testing import Driver, multiset
from operators.bands import Band
from operators.join_side import key_codes
from operators.oa_join import OAJoin
from tests.naive.joins import band, window_join

TEXT = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
PAIR = Schema({"ts": pa.int64(), "k": pa.dictionary(pa.int8(), pa.string()), "n": pa.int8()}, "ts", "s")
ROWS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.integers(0, 1)), max_size=30)


@pytest.fixture
def one_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_codes, "_hashed", lambda column: np.zeros(len(column), np.int64))
    monkeypatch.setattr(key_codes, "mix_integers", lambda codes, values: None)


def page(schema: Schema, rows: list[tuple[Any, ...]]) -> Page:
    return Page.of(schema, {name: [row[i] for row in rows] for i, name in enumerate(schema.names)})


@pytest.mark.usefixtures("one_code")
@pytest.mark.parametrize(
    ("schema", "keys"), [(TEXT, [("k", "k")]), (PAIR, [("k", "k"), ("n", "n")])], ids=["text", "two"]
)
def test_only_equal_keys_join_and_only_promised_keys_are_purged(
    schema: Schema, keys: list[tuple[str, str]]
) -> None:
    @given(ROWS, ROWS, st.integers(0, 9))
    def holds(left: list[Any], right: list[Any], below: int) -> None:
        sides = [page(schema, rows) for rows in (left, right)]
        driver = Driver(OAJoin(keys, Band(2, 1)), schema, schema)
        for port in (0, 1):
            driver.feed(port, sides[port])
        a, b = (side.to_pylist() for side in sides)
        assert multiset(driver.rows()) == multiset(window_join(a, b, keys, band(2, 1)))
        driver.feed(1, GroupWise.of({"k": ["a"], "n": [0]} if schema is PAIR else {"k": ["a"]}, [below]))
        gone = [r for r in a if r["ts"] + 1 < below and r["k"] == "a" and not r.get("n")]
        assert driver.operator.state().tuples == len(left) + len(right) - len(gone)

    holds()


def test_promises_of_keys_may_come_in_other_types() -> None:
    keys = [("k", "k"), ("n", "n")]
    driver = Driver(OAJoin(keys, Band(0, 0)), PAIR, PAIR)
    driver.feed(0, page(PAIR, [(1, "a", 0), (1, "a", 1), (1, "b", 1)]))
    driver.feed(1, GroupWise.of({"n": [1, 1], "k": ["a", None]}, [5, 5]))
    assert driver.operator.state().tuples == 2
    driver.feed(1, GroupWise.of({"k": ["b"], "n": [1_000]}, [5]))
    assert driver.operator.state().tuples == 2
    driver.feed(1, Linear(5))
    assert driver.operator.state().tuples == 0
