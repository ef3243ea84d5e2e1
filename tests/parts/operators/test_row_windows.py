"""Tuple-based windows by two stacks and by subtraction, held to the definition and to the plain strategy."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import ContractError, GraphError, Linear, Page, Schema
from oop_engine.extend import Message
from oop_engine.operators.aggregates import Avg, Count, First, Last, Max, Min, Stddev, Sum, UserDefined, Var
from oop_engine.operators.slicing.row_slides import RowPanes
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Extents, TupleBased
from oop_engine.testing import END, Driver
from tests.naive import windows as naive
from tests.parts.operators.window_streams import MOVE, SCHEMA, Checked, page

MANY = {
    "n": Count(), "nv": Count("v"), "s": Sum("v"), "sx": Sum("x"), "avg": Avg("v"), "ax": Avg("x"),
    "lo": Min("x"), "hi": Max("x"), "low": Min("v"), "high": Max("v"), "var": Var("x"), "sd": Stddev("v"),
    "soon": Min("ts"), "first": First("v"), "last": Last("x"),
}  # fmt: skip
NAIVE = {
    name: naive.aggregate(kind, column)
    for name, kind, column in [
        ("n", "count", None), ("nv", "count", "v"), ("s", "sum", "v"), ("sx", "sum", "x"), ("avg", "avg", "v"),
        ("ax", "avg", "x"), ("lo", "min", "x"), ("hi", "max", "x"), ("low", "min", "v"), ("high", "max", "v"),
        ("var", "var", "x"), ("sd", "stddev", "v"), ("soon", "min", "ts"),
    ]
} | {
    "first": naive.aggregate("first", "v", "row"),
    "last": naive.aggregate("last", "x", "row"),
}  # fmt: skip
NUMBERS = Schema({"ts": pa.int64(), "v": pa.int64(), "x": pa.float64()}, "ts", "s")
LENGTHS = st.tuples(st.integers(1, 12), st.integers(1, 12))


def expected(of: list[dict[str, Any]], lengths: tuple[int, int]) -> list[dict[str, Any]]:
    return naive.sliding(naive.number(of), "row", (), NAIVE, *lengths)


def same(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> bool:
    assert [list(row) for row in found] == [list(row) for row in wanted]
    pairs = [
        (a, b)
        for x, y in zip(found, wanted, strict=True)
        for a, b in zip(x.values(), y.values(), strict=True)
    ]
    return all(alike(a, b) for a, b in pairs)


def alike(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or (math.isnan(a) and math.isnan(b))


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[Message | str]]:
    """Return rows, and the same as pages, with snapshots and promises between them."""
    values = st.sampled_from([None, -9, -1, 0, 4, 7])
    floats = st.sampled_from([None, -1.5, 0.25, 3.0, math.nan])
    rows = draw(st.lists(st.tuples(values, floats), max_size=25))
    of = [{"ts": 3 * i % 7, "k": "a", "j": 0, "v": v, "x": x} for i, (v, x) in enumerate(rows)]
    said: list[Message | str] = []
    cuts = sorted(draw(st.lists(st.integers(0, len(of)), max_size=4)))
    for start, stop in pairwise([0, *cuts, len(of)]):
        said += [page(of[start:stop]), MOVE if (start + stop) % 2 else Linear(stop - 100)]
    return of, said


@settings(max_examples=40)
@given(streams(), LENGTHS)
def test_results_are_those_of_the_definition(stream: Any, lengths: tuple[int, int]) -> None:
    """Wherever pages are cut and snapshots are taken, with nulls, with NaN, for any range and slide."""
    of, said = stream
    driver = Checked(WindowAggregate(TupleBased(*lengths), MANY, strategy="stacks"), SCHEMA).play(said)
    assert same(driver.rows(), expected(of, lengths))


@settings(max_examples=40)
@given(streams(), LENGTHS, st.sampled_from(["start", "end"]))
def test_messages_are_those_of_the_plain_strategy(stream: Any, lengths: tuple[int, int], stamp: Any) -> None:
    asked = {"n": Count("v"), "s": Sum("v"), "lo": Min("v")}
    plain, stacks = (
        Checked(WindowAggregate(TupleBased(*lengths), asked, stamp=stamp, strategy=how), SCHEMA).play(
            stream[1]
        )
        for how in ("windows", "auto")
    )
    assert stacks.out == plain.out


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60), LENGTHS, st.integers(1, 20))
def test_not_even_the_last_digit_depends_on_page_cuts(
    values: list[float], lengths: tuple[int, int], cut: int
) -> None:
    asked = WindowAggregate(TupleBased(*lengths), {"s": Sum("x"), "a": Avg("x")})
    whole, parts = (Driver(asked, NUMBERS).run(cut_up(values, size)) for size in (len(values), cut))
    assert whole.rows() == parts.rows()


def cut_up(values: list[Any], size: int) -> list[tuple[int, Page]]:
    whole = numbers(values)
    return [(0, whole.slice(at, min(at + size, len(whole)))) for at in range(0, len(whole), size)]


def numbers(values: list[Any]) -> Page:
    """Return a page with the values in ``x``, and in ``v`` where they are whole."""
    whole = [v if isinstance(v, int) else 0 for v in values]
    return Page.of(NUMBERS, {"ts": range(len(values)), "v": whole, "x": [float(v) for v in values]})


def test_what_left_a_sum_of_floats_leaves_nothing_behind() -> None:
    values = [1e300, math.inf, math.nan, -math.inf, 0.1, 0.2, 0.3, 0.1]
    driver = Driver(WindowAggregate(TupleBased(2, 1), {"s": Sum("x")}), NUMBERS).run([(0, numbers(values))])
    assert [row["s"] for row in driver.rows()][5:8] == [0.1 + 0.2, 0.2 + 0.3, 0.3 + 0.1]


@given(st.lists(st.sampled_from([-(2**63), 2**63 - 1, -1, 1, 2**62, -(2**62)]), max_size=30), LENGTHS)
def test_a_sum_of_integers_is_right_or_an_error(values: list[int], lengths: tuple[int, int]) -> None:
    """Exact, even where panes that went through the window would not fit together."""
    sums = naive.sliding(
        naive.number([{"v": v} for v in values]), "row", (), {"s": naive.aggregate("sum", "v")}, *lengths
    )
    driver = Driver(WindowAggregate(TupleBased(*lengths), {"s": Sum("v")}, strategy="stacks"), NUMBERS)
    try:
        driver.run([(0, numbers(values))])
    except ContractError:
        assert lengths[1] > 1 or any(not -(2**63) <= row["s"] < 2**63 for row in sums)
    else:
        assert driver.rows() == sums


def test_an_overflow_names_its_window() -> None:
    driver = Driver(WindowAggregate(TupleBased(3, 1), {"s": Sum("v")}), NUMBERS)
    with pytest.raises(ContractError, match=r"window \[1, 4\)"):
        driver.feed(0, numbers([1, 2**62, 2**62 - 2, 2**62]))


def test_long_streams_agree_with_the_plain_strategy() -> None:
    draw = np.random.default_rng(0)
    values = draw.integers(-1000, 1000, 5000)
    whole = Page.of(NUMBERS, {"ts": range(5000), "v": values, "x": values.astype(float)})
    asked = {"s": Sum("v"), "sx": Sum("x"), "lo": Min("v"), "hi": Max("x"), "n": Count()}
    for lengths in [(1000, 1), (700, 64), (1000, 300), (128, 128), (100, 350)]:
        stacks, plain = (
            Driver(WindowAggregate(TupleBased(*lengths), asked, strategy=how), NUMBERS).run(
                [(0, whole.slice(at, min(at + 777, 5000))) for at in range(0, 5000, 777)]
            )
            for how in ("stacks", "windows")
        )
        assert stacks.rows() == plain.rows()


def test_windows_of_billions_take_memory_as_they_fill() -> None:
    driver = Driver(WindowAggregate(TupleBased(2**40, 2**39), {"lo": Min("v"), "s": Sum("v")}), NUMBERS)
    driver.feed(0, numbers([5, 3, 4]))
    assert driver.operator.state().nbytes < 10_000
    driver.feed(0, END)
    assert driver.rows() == [
        {"window_start": -(2**39), "window_end": 2**39, "lo": 3, "s": 12},
        {"window_start": 0, "window_end": 2**40, "lo": 3, "s": 12},
    ]


def test_a_long_window_of_few_rows_reads_nothing_behind_its_ring() -> None:
    driver = Driver(WindowAggregate(TupleBased(10_000_000, 1), {"hi": Max("x")}), NUMBERS)
    driver.feed(0, numbers([5, 3, 4]))
    driver.feed(0, numbers([6]))  # to read memory far behind the ring ended the process
    assert [row["hi"] for row in driver.rows()] == [5, 5, 5, 6]


def test_a_window_of_n_keeps_n_panes_a_column() -> None:
    driver = Driver(WindowAggregate(TupleBased(1024, 1), {"lo": Min("v")}), NUMBERS)
    driver.feed(0, numbers(list(range(5000))))
    state = driver.operator.state()
    assert (state.tuples, state.partials, state.groups) == (0, 1024, 1)
    assert 8 * 1024 <= state.nbytes <= 8 * 1024 + 100
    driver.move()
    assert driver.operator.state() == state


@pytest.mark.slow(keep=8)
@pytest.mark.parametrize(
    "kind",
    [
        pa.bool_(),
        pa.int8(),
        pa.uint16(),
        pa.uint32(),
        pa.float32(),
        pa.date32(),
        pa.time32("s"),
        pa.timestamp("us", "UTC"),
    ],
    ids=str,
)
@pytest.mark.parametrize("lengths", [(1, 1), (3, 1), (5, 2), (4, 4)], ids=str)
def test_columns_of_every_type_with_an_order(kind: pa.DataType, lengths: tuple[int, int]) -> None:
    schema = Schema({"ts": pa.int64(), "c": kind}, "ts", "s")
    plain = (
        [1, 0, None, 1, 0, 0, None, None, None, 1]
        if pa.types.is_boolean(kind)
        else [5, 0, None, 120, 7, 7, *[None] * 5]
    )
    values = pa.array(plain, pa.int32()).cast(pa.int64() if kind.bit_width == 64 else pa.int32()).cast(kind)
    batch = pa.RecordBatch.from_arrays([pa.array(range(len(plain))), values], schema=schema.fields)
    asked: dict[str, Any] = {"lo": Min("c"), "hi": Max("c"), "n": Count("c")}
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        asked |= {"s": Sum("c"), "a": Avg("c")}
    stacks, windows = (
        Driver(WindowAggregate(TupleBased(*lengths), asked, strategy=how), schema).run(
            [(0, Page(schema, batch))]
        )
        for how in ("stacks", "windows")
    )
    assert stacks.rows() == windows.rows()


def test_the_end_comes_once() -> None:
    driver = Driver(WindowAggregate(TupleBased(3, 2), {"n": Count()}), NUMBERS)
    driver.feed(0, numbers([1, 2, 3]))
    assert driver.feed(0, Linear(7)) == []
    assert len(driver.feed(0, END)) == 2
    assert driver.feed(0, END) == []


def test_stacks_are_refused_where_they_cannot_be() -> None:
    own = UserDefined(lambda v: (v,), lambda a, b: a, lambda s: s[0], ("v",), ("int64",), pa.int64())
    refused: list[tuple[Any, tuple[str, ...]]] = [({"u": own}, ()), ({"n": Count()}, ("v",))]
    for asked, by in refused:
        with pytest.raises(GraphError, match="strategy='stacks' needs TupleBased"):
            WindowAggregate(TupleBased(3, 2), asked, by, strategy="stacks").opened(NUMBERS)
    assert Driver(WindowAggregate(TupleBased(3, 2), {"f": own}), NUMBERS).run([(0, numbers([1]))]).rows()


@pytest.mark.parametrize("lengths", [(5, 2), (6, 2), (3, 3), (2, 5), (1, 1), (4, 1), (7, 4)])
def test_panes_are_what_starts_and_ends_cut(lengths: tuple[int, int]) -> None:
    extents = TupleBased(*lengths).bound(NUMBERS)
    assert isinstance(extents, Extents)
    panes = RowPanes(extents)
    range_, slide = lengths
    for number in range(30):
        passed = panes.passed(0, number)
        assert passed.windows == number // slide
        if not panes.of_one:
            spans = list(zip(passed.starts.tolist(), passed.ends.tolist(), strict=True))
            edges = {max((w + 1) * slide - side, 0) for w in range(30) for side in (0, range_)}
            assert all(at in edges or at == number for span in spans for at in span)
