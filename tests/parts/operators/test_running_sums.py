"""Counts and integer sums without groups are differences of running sums; with groups, they are the same by stacks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import ContractError, Linear, Page
from oop_engine.operators import Count, Max, Sliding, Sum, WindowAggregate
from oop_engine.testing import Driver, multiset
from tests.naive.many_windows import many
from tests.naive.windows import aggregate
from tests.parts.operators.test_sessions import KEYED, group, keyed
from tests.parts.operators.window_streams import SCHEMA, Checked, events, rows

SUMS = {"n": Count(), "nv": Count("v"), "s": Sum("v")}
ORACLE = {
    "n": aggregate("count", None, "ts"),
    "nv": aggregate("count", "v", "ts"),
    "s": aggregate("sum", "v", "ts"),
}
LENGTH = st.integers(1, 12)
DEFINITIONS = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(LENGTH, LENGTH, LENGTH), min_size=1, max_size=5
)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(), by=st.sampled_from([(), ("k",)]), definitions=DEFINITIONS)
def test_windows_are_those_of_the_definitions(data, of, by, definitions):
    said = data.draw(events(of))
    operator = WindowAggregate({name: Sliding(*d) for name, d in definitions.items()}, SUMS, by)
    driver = Checked(operator, SCHEMA).play(said)
    assert multiset(driver.rows()) == multiset(many(of, "ts", by, ORACLE, definitions))


WINDOWS = {"two": Sliding(2, 1), "three": Sliding(3, 1)}


def page(ts, v) -> Page:
    return Page.of(KEYED, {"ts": ts, "k": ["a"] * len(ts), "v": v})


def test_sums_that_wrap_on_the_way_are_right():
    driver = Driver(WindowAggregate(WINDOWS, {"s": Sum("v")}), KEYED)
    most, least = 2**63 - 1, -(2**63)
    driver.feed(0, page([0, 1, 2, 3], [most, least, most, 1 - most]))
    driver.feed(0, "end")
    found = {(row["window"], row["window_end"]): row["s"] for row in driver.rows()}
    assert found["two", 1] == most
    assert found["two", 2] == -1
    assert found["three", 3] == most - 1
    assert found["three", 4] == least + 1


@pytest.mark.parametrize(("values", "end"), [([2**62, 2**62, 0], 2), ([0, -(2**62), -(2**62) - 1], 3)])
def test_a_window_that_leaves_64_bits_is_told(values, end):
    driver = Driver(WindowAggregate(WINDOWS, {"s": Sum("v")}), KEYED)
    driver.feed(0, page([0, 1, 2], values))
    with pytest.raises(
        ContractError, match=rf"Sum\('v'\) must fit 64 bits; it does not in window \[-?\d+, {end}\)"
    ):
        driver.feed(0, Linear(10))


def test_groups_that_close_by_themselves():
    driver = Driver(WindowAggregate(WINDOWS, {"n": Count()}, ("k",)), KEYED)
    for ts, k in ((0, "a"), (1, "a"), (1, "b"), (2, "b")):
        driver.feed(0, keyed(ts, k))
    driver.feed(0, group("a", 2))
    assert [(row["k"], row["window"], row["window_end"], row["n"]) for row in driver.rows()] == [
        ("a", "two", 1, 1), ("a", "three", 1, 1), ("a", "two", 2, 2), ("a", "three", 2, 2),
    ]  # fmt: skip


def test_explain_tells_when():
    windows = {f"{i}": Sliding(4, 1) for i in range(9)}
    assert "running sums" in WindowAggregate(windows, SUMS).explain((KEYED,))
    assert "running sums" not in WindowAggregate(windows, {"hi": Max("v")}).explain((KEYED,))
    one = {"one": Sliding(4, 1)}
    assert "running sums" not in WindowAggregate(one, SUMS, by=("k",)).explain((KEYED,))
    assert "running sums" in WindowAggregate(one, SUMS).explain((KEYED,))
