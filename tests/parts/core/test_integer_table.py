from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine.core.groups.integer_table import IntegerTable
from oop_engine.operators.keys.key_table import KeyTable
from tests.naive.kernel import slots_of

EDGES = [0, 1, -1, 2**63 - 1, -(2**63), 2**32, -(2**32)]
Kind = type[IntegerTable] | type[KeyTable]
TABLES = pytest.mark.parametrize("kind", [IntegerTable, KeyTable])
VALUE = st.none() | st.sampled_from(EDGES) | st.integers(-20, 20) | st.integers(-(2**63), 2**63 - 1)


def arrays(values: list[int | None]) -> tuple[np.ndarray, np.ndarray | None]:
    valid = np.array([v is not None for v in values], np.bool_)
    return np.array([v or 0 for v in values], np.int64), None if valid.all() else valid


@TABLES
@given(parts=st.lists(st.lists(VALUE, max_size=30), max_size=6))
def test_codes_are_those_of_a_dictionary(kind: Kind, parts: list[list[int | None]]) -> None:
    table, known = kind(), {}  # type: ignore[var-annotated]
    for part in parts:
        rows = [(value,) for value in part]
        assert table.find(*arrays(part)).tolist() == slots_of(rows, known, add=False)
        assert table.encode(*arrays(part)).tolist() == slots_of(rows, known, add=True)
    for part in parts:
        assert table.find(*arrays(part)).tolist() == slots_of([(v,) for v in part], known, add=False)


@TABLES
@pytest.mark.parametrize("step", [1, -7, 2**20, 2**44, 2**52])
def test_many_keys_in_steps(kind: Kind, step: int) -> None:
    rng = np.random.default_rng(0)
    keys = np.arange(4000, dtype=np.int64) * step
    rows = keys[rng.integers(0, keys.size, 50_000)]
    table = kind()
    codes = np.concatenate([table.encode(part) for part in np.array_split(rows, 7)])
    known: dict[int, int] = {}
    assert codes.tolist() == [known.setdefault(value, len(known)) for value in rows.tolist()]
    assert table.find(keys[-1:] + 1).tolist() == [-1]


@TABLES
def test_keys_close_together_are_found_by_their_distance_and_others_by_hash(
    kind: Kind,
) -> None:
    rng = np.random.default_rng(0)
    table, known = kind(), dict[int, int]()
    ways = []
    for low, high in [(0, 9000), (-3000, 9000), (0, 2**40), (-(10**5), 10**5), (2**63 - 9, 2**63 - 1)]:
        rows = rng.integers(low, high, 40_000)
        expected = [known.setdefault(value, len(known)) for value in rows.tolist()]
        assert table.encode(rows).tolist() == expected
        ways.append(table._lowest is not None)
        absent = np.array([-(2**63), 2**62, high])
        assert table.find(absent).tolist() == [known.get(value, -1) for value in absent.tolist()]
    assert ways == [True, True, False, False, False]
    assert table.find(np.array(list(known))).tolist() == list(known.values())


@TABLES
def test_growing_numbers_are_not_moved_each_time(kind: Kind) -> None:
    table, moved = kind(), 0
    for start in range(0, 200_000, 1000):
        before = table._places
        assert table.encode(np.arange(start, start + 1000)).tolist() == list(range(start, start + 1000))
        moved += table._places is not before
    assert moved < 20


@pytest.mark.slow(keep=4)
@TABLES
@pytest.mark.parametrize("width", ["i1", "u1", "i2", "u2", "i4", "u4", "i8"])
def test_narrow_integers_are_the_same_keys_as_wide_ones(kind: Kind, width: str) -> None:
    limits = np.iinfo(width)
    values = np.array([limits.min, 5, limits.max, 5], width)
    table = kind()
    assert table.encode(values).tolist() == [0, 1, 2, 1]
    assert table.find(values.astype(np.int64)).tolist() == [0, 1, 2, 1]
    assert table.find(np.array([limits.max - 1], width)).tolist() == [-1]
    assert len(table) == 3


@TABLES
def test_ends_of_int64_next_to_null(kind: Kind) -> None:
    table = kind()
    values, valid = (
        np.array([0, 2**63 - 1, -(2**63), 0, 2**63 - 1]),
        np.array([False, True, True, True, False]),
    )
    assert table.encode(values, valid).tolist() == [0, 1, 2, 3, 0]
    assert table.find(values, valid).tolist() == [0, 1, 2, 3, 0]
