from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, ContractError, GroupWise, Joint, Linear
from oop_engine.core.punctuation import shift

BOUNDS = st.one_of(st.integers(NEVER, FOREVER), st.sampled_from([NEVER, NEVER + 1, FOREVER - 1, FOREVER]))
STEPS = st.one_of(st.integers(-100, 100), BOUNDS, st.sampled_from([2**70, -(2**70)]))


def shifted(bound: int, by: int) -> int:
    return bound if bound in (NEVER, FOREVER) else min(max(bound + by, NEVER), FOREVER)


@given(st.lists(BOUNDS, max_size=5), STEPS)
def test_a_shift_saturates_and_keeps_the_ends(bounds: list[int], by: int) -> None:
    by = min(max(by, -FOREVER), FOREVER)
    expected = [shifted(b, by) for b in bounds]
    assert [shift(b, by) for b in bounds] == expected
    assert [shift(np.int64(b), by) for b in bounds] == expected  # type: ignore[call-overload]
    moved = shift(np.array(bounds, np.int64), by)
    assert moved.dtype == np.int64
    assert moved.tolist() == expected


def test_a_shift_further_than_int64_saturates() -> None:
    assert shift(np.array([5]), 2**70).tolist() == [FOREVER]
    assert shift(5, 2**70) == FOREVER


def test_one_bound_a_group() -> None:
    with pytest.raises(ContractError, match="one bound a group; got 1 for 2"):
        GroupWise.of({"src": ["a", "b"]}, [60])


def test_keys_of_any_integer() -> None:
    punctuation = GroupWise.of({"id": [2**64 - 1, None]}, [60, 120])
    assert punctuation.groups.column("id").to_pylist() == [2**64 - 1, None]


@pytest.mark.parametrize(
    ("groups", "below"),
    [
        ({"k": ["a", 1]}, [1, 2]),
        ({"k": ["a"]}, [2**64]),
        ({"k": [2**300]}, [1]),
        ({"k": ["a"], "j": [1, 2]}, [1]),
    ],
)
def test_keys_that_are_none_are_named(groups: dict[str, Any], below: list[int]) -> None:
    with pytest.raises(
        ContractError, match="keys must be lists of one type and one length, bounds int64; got "
    ):
        GroupWise.of(groups, below)


def test_group_wise_is_equal_by_value() -> None:
    one = GroupWise.of({"src": ["a", "b"]}, [60, 120])
    assert one == GroupWise.of({"src": ["a", "b"]}, [60, 120])
    assert one != GroupWise.of({"src": ["a", "b"]}, [60, 121])
    assert one != GroupWise.of({"dst": ["a", "b"]}, [60, 120])
    assert one != Linear(60)
    assert one.filter(np.array([False, True])) == GroupWise.of({"src": ["b"]}, [120])
    assert len(one) == 2
    assert one.attributes == ("src",)


def test_joint_promises_are_sorted_by_name() -> None:
    assert Joint.of(ts_right=7, ts=10) == Joint((("ts", 10), ("ts_right", 7)))
    assert Joint.of(b=1, a=2).attributes == ("a", "b")
