"""Many windows at a time: what is refused, and what leaves in pages of bounded size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import ContractError, GraphError, Linear, Operator, Page, Schema
from oop_engine.operators.aggregate import Aggregate
from oop_engine.operators.aggregates import Count, Median, UserDefined
from oop_engine.operators.bucket import Bucket
from oop_engine.operators.in_order.buffering_aggregate import BufferingAggregate
from oop_engine.operators.levels.consolidate import Consolidate
from oop_engine.operators.levels.partial_aggregate import PartialAggregate
from oop_engine.operators.slicing import closing
from oop_engine.operators.slicing.checks import MOST_PARTIALS
from oop_engine.operators.slicing.output import PAGE_ROWS
from oop_engine.operators.slicing.panes import open_spans
from oop_engine.operators.slicing.stores import adaptive_groups, pane_store, slice_ring, window_store
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import (
    Landmark,
    PartitionedTupleBased,
    Session,
    Sliding,
    Tumbling,
    TupleBased,
)
from oop_engine.testing import Driver, multiset
from tests.naive.many_windows import many
from tests.naive.windows import sliding
from tests.parts.operators.test_window_aggregate import AGGREGATES, BY, ORACLE
from tests.parts.operators.window_streams import SCHEMA as ROWS
from tests.parts.operators.window_streams import Checked, events, rows

SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
N = {"n": Count()}
CHAIN = UserDefined(tuple, lambda a, b: a, tuple, ("k",), ("int64",), pa.int64())
IN_ORDER = replace(CHAIN, commutative=False)
FAR = 10**12


def page(times: list[int], keys: list[int] | None = None) -> Page:
    return Page.of(SCHEMA, {"ts": times, "k": keys or [0] * len(times)})


@pytest.mark.parametrize(
    ("operator", "says"),
    [
        (WindowAggregate(Sliding(FAR, 1), N), "at most 10,000,000 windows"),
        (WindowAggregate(Sliding(FAR, 1), N, strategy="panes"), "at most 10,000,000 windows"),
        (WindowAggregate(Sliding(2 * 10**6, 1), N, strategy="windows"), "strategy='auto'"),
        (WindowAggregate(Sliding(2 * 10**6, 1), N, strategy="panes"), "strategy='auto'"),
        (
            WindowAggregate(Sliding(2 * 10**6, 1), N, empty=True, strategy="windows"),
            "at most 1,000,000 windows, each with a partial",
        ),
        (
            WindowAggregate(Sliding(2 * 10**6, 1), {"c": CHAIN}),
            "at most 1,000,000 windows, each with a partial",
        ),
        (WindowAggregate(Sliding(FAR, 1), {"c": IN_ORDER}), "at most 10,000,000 windows"),
        (WindowAggregate(Landmark(10), {"c": IN_ORDER}, stamp="start"), "use stamp='end'"),
        (WindowAggregate(TupleBased(FAR, 1), N), "range=1000000000000 and slide=1"),
        (WindowAggregate(PartitionedTupleBased(FAR, 1), N, ("k",)), "it is in 1,000,000,000,000"),
        (WindowAggregate({"a": Sliding(60, 60), "b": Sliding(FAR, 1)}, N), "'b': a tuple must be in at most"),
        (WindowAggregate({"a": Sliding(FAR, 10**6 + 1)}, N), "'a' has 1,000,000,000,000 of 1 s"),
        (BufferingAggregate(Sliding(FAR, 1), N), "take a longer slide or a shorter range"),
        (PartialAggregate(Sliding(FAR, 1), N), "take a longer slide or a shorter range"),
    ],
)
def test_definitions_with_too_many_windows_a_tuple_are_refused(operator: Operator, says: str) -> None:
    with pytest.raises(GraphError, match=says):
        operator.output_schemas((SCHEMA,))


def test_so_are_window_ids_that_cannot_be_of_such_windows():
    tagged = Bucket(Sliding(20, 10)).opened(SCHEMA).schemas_out[0]
    with pytest.raises(GraphError, match="at most 1,000,000 windows"):
        Aggregate(Sliding(2 * 10**6, 1), N).output_schemas((tagged,))
    driver = Driver(Aggregate(Sliding(20, 10), N), tagged)
    for first, last in [(0, MOST_PARTIALS), (-(2**63), 2**63 - 1)]:
        ids = {"ts": [1, 5], "k": [0, 0], "first_wid": [0, first], "last_wid": [1, last]}
        with pytest.raises(ContractError, match=f"got first_wid={first}, last_wid={last}"):
            driver.feed(0, Page.of(tagged, ids))


@pytest.mark.parametrize(
    "operator",
    [
        WindowAggregate(Tumbling(1), N, empty=True),
        WindowAggregate(Tumbling(1), N, ("k",), empty=True),
        WindowAggregate(Landmark(1), N, ("k",)),
        BufferingAggregate(Tumbling(1), N, empty=True),
        BufferingAggregate(Landmark(1), N, ("k",)),
    ],
    ids=lambda operator: operator.describe() if isinstance(operator, Operator) else None,
)
@pytest.mark.parametrize("far", [FAR, 2**61])
def test_a_gap_of_too_many_windows_is_told(operator: Operator, far: int):
    driver = Driver(operator, SCHEMA)
    times = page([0, far])
    with pytest.raises(ContractError, match=r"at most 10,000,000 windows without a tuple; .* put a Guard in"):
        driver.run([(0, times)])


def test_a_gap_is_told_with_its_group_when_halves_are_merged():
    [halves] = PartialAggregate(Tumbling(1), N, ("k",)).output_schemas((SCHEMA,))
    driver = Driver(Consolidate(Tumbling(1), N, ("k",), tuples=SCHEMA, empty=True), halves)
    driver.feed(0, Page.of(halves, {"pane_start": [0, FAR], "k": [7, 7], "state0_count": [1, 1]}))
    with pytest.raises(
        ContractError, match=r"got 1,000,000,000,001 of group {'k': 7}, which end from 1 to 1000000"
    ):
        driver.feed(0, Linear(FAR + 1))


@pytest.mark.parametrize("by", [(), ("k",)])
@pytest.mark.parametrize("windows", [Tumbling(1), Sliding(10, 3), {"a": Tumbling(1), "b": Sliding(10, 3)}])
def test_a_stretch_without_tuples_costs_nothing_where_values_are_listed(windows: Any, by: tuple[str, ...]):
    times = [-(2**45), 0, 2**45]  # a pause for each million windows would be millions of pauses
    listed = Driver(WindowAggregate(windows, {"c": Median("k"), "n": Count()}, by), SCHEMA).run(
        [(0, page(times))]
    )
    counted = Driver(WindowAggregate(windows, N, by), SCHEMA).run([(0, page(times))])
    assert [row | {"c": 0} for row in counted.rows()] == listed.rows()


@pytest.mark.parametrize(
    "operator",
    [
        WindowAggregate(Tumbling(1), N, empty=True),
        WindowAggregate(Landmark(1), N, ("k",)),
        BufferingAggregate(Tumbling(1), N, empty=True),
        BufferingAggregate(Landmark(1), N, ("k",)),
        WindowAggregate(Sliding(300_000, 1), N, ("k",)),
        WindowAggregate({"a": Sliding(300_000, 1)}, N, ("k",)),
        BufferingAggregate(Sliding(300_000, 1), N, ("k",)),
        WindowAggregate(TupleBased(300_000, 1), N),
    ],
    ids=lambda operator: operator.describe() if isinstance(operator, Operator) else None,
)
def test_many_windows_leave_in_few_pages_of_bounded_size(operator: Operator):
    driver = Driver(operator, SCHEMA).run([(0, page([0, 299_999]))])
    sizes = [len(page) for page in driver.pages()]
    assert sum(sizes) in (300_000, 300_001, 599_999)
    assert max(sizes) <= PAGE_ROWS
    assert len(sizes) <= 2 + 599_999 // (PAGE_ROWS // 2)
    ends = np.concatenate([page.times for page in driver.pages()])
    assert (np.diff(ends) == 1).all()
    assert driver.operator.state().in_use == (0, 0, 0)


def test_of_many_windows_few_are_in_memory():
    """Two stray tuples in a million windows each; what is kept of them stays small."""
    operator = WindowAggregate(Sliding(1_000_000, 1), N, ("k",), strategy="adaptive").opened(SCHEMA)
    list(operator.on_page(0, page([0, 10**15], [1, 2])))
    assert operator.state().nbytes < 10_000
    found = operator.on_punctuation(0, Linear(3_000_000))
    most = seen = 0
    for _, message in found:
        seen += len(message) if isinstance(message, Page) else 0
        most = max(most, operator.state().nbytes)
    assert seen == 1_000_000
    assert most < 1 << 27


def at_once(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let so many windows leave together."""
    for module in (closing, open_spans, adaptive_groups, pane_store, slice_ring, window_store):
        monkeypatch.setattr(module, "AT_ONCE", most)


@pytest.mark.parametrize("strategy", ["windows", "panes", "adaptive"])
@pytest.mark.parametrize("wide", [0, 10**9])
def test_windows_that_close_in_parts_are_the_same(strategy, wide, monkeypatch):
    at_once(monkeypatch, 3)
    monkeypatch.setattr(adaptive_groups, "WIDE", wide)

    @settings(max_examples=12)
    @given(data=st.data(), of=rows(), by=BY, range_=st.integers(1, 40), slide=st.integers(1, 9))
    def holds(data, of, by, range_, slide):
        operator = WindowAggregate(Sliding(range_, slide), AGGREGATES, by, strategy=strategy)
        driver = Checked(operator, ROWS).play(data.draw(events(of)))
        assert multiset(driver.rows()) == multiset(sliding(of, "ts", by, ORACLE, range_, slide))
        assert driver.operator.state().in_use == (0, 0, 0)

    holds()


def test_windows_that_share_slices_close_in_parts(monkeypatch):
    at_once(monkeypatch, 3)
    length = st.integers(1, 40)

    @settings(max_examples=15)
    @given(
        data=st.data(),
        of=rows(),
        by=BY,
        definitions=st.lists(st.tuples(length, length), min_size=1, max_size=3),
    )
    def holds(data, of, by, definitions):
        named = {str(i): (range_, slide, 0) for i, (range_, slide) in enumerate(definitions)}
        operator = WindowAggregate({name: Sliding(*d) for name, d in named.items()}, AGGREGATES, by)
        driver = Checked(operator, ROWS).play(data.draw(events(of)))
        assert multiset(driver.rows()) == multiset(many(of, "ts", by, ORACLE, named))

    holds()


FAR_ROWS = rows(st.integers(-20, 60).map(lambda t: t * 10**6))
KNOBS: dict[str, tuple[Any, dict[str, Any]]] = {
    "windows": (Sliding(9 * 10**6, 3 * 10**6), {"strategy": "windows"}),
    "panes": (Sliding(9 * 10**6, 3 * 10**6), {"strategy": "panes"}),
    "adaptive": (Sliding(9 * 10**6, 3 * 10**6), {"strategy": "adaptive"}),
    "slices": ({"long": Sliding(9 * 10**6, 3 * 10**6), "short": Tumbling(2 * 10**6)}, {}),
    "lists": (Sliding(9 * 10**6, 3 * 10**6), {"aggregates": {"m": Median("v")}}),
    "landmark": (Landmark(5 * 10**6, origin=-30 * 10**6), {}),
    "landmark lists": (Landmark(5 * 10**6, origin=-30 * 10**6), {"aggregates": {"m": Median("v")}}),
    "empty": (Tumbling(4 * 10**6), {"empty": True}),
    "empty lists": (Tumbling(4 * 10**6), {"empty": True, "aggregates": {"m": Median("v")}}),
    "session": (Session(3 * 10**6), {}),
    "session lists": (Session(3 * 10**6), {"aggregates": {"m": Median("v")}}),
}


@pytest.mark.parametrize("kind", KNOBS)
def test_steps_to_a_bound_are_as_few_as_windows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far apart in time, a step of one unit each would not come to an end."""
    windows, options = KNOBS[kind]
    asked = {"aggregates": AGGREGATES, "by": ("k",)} | options
    steps: list[Any] = []
    close = closing.Closing._closed

    def counted(self: Any, slots: Any, bounds: Any) -> Any:
        steps.append(bounds)
        assert len(steps) < 1_000
        return close(self, slots, bounds)

    @settings(max_examples=15)
    @given(data=st.data(), of=FAR_ROWS)
    def holds(data: st.DataObject, of: list[dict[str, Any]]) -> None:
        stream = data.draw(events(of, kinds="pgg"))
        whole = Checked(WindowAggregate(windows, **asked), ROWS).play(stream)
        with monkeypatch.context() as patch:
            at_once(patch, 3)
            patch.setattr(closing.Closing, "_closed", counted)
            steps.clear()
            parts = Checked(WindowAggregate(windows, **asked), ROWS).play(stream)
        assert multiset(parts.rows()) == multiset(whole.rows())
        assert len(steps) <= len(whole.rows()) + len(stream) + 80  # and one for each second without a tuple

    holds()
