"""Aggregates with a state that no file of the packages knows run wherever the others do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Graph, Page, Schema, run
from oop_engine.core.graphs.halves import consolidated
from oop_engine.operators import BoundedDisorder, Count, Punctuate, Sliding, WindowAggregate
from oop_engine.operators.aggregates import Aggregation, Arrays, Part, UserDefined
from oop_engine.operators.kernels import monoids
from oop_engine.operators.kernels.monoids import Monoid
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.slicing.accumulators import Accumulator, Compiled, register_accumulator
from oop_engine.testing import Case, Driver, contract_suite, multiset
from oop_engine.windows import Landmark, PartitionedTupleBased, TupleBased
from tests.naive import windows as naive
from tests.naive.many_windows import many
from tests.parts.operators.window_streams import SCHEMA, Checked, events, page, rows


@register_accumulator("squares of a test")
class Squares(Accumulator):
    """Sum of squares, all in NumPy."""

    identity = (np.int64(0),)

    def prepare(self, page: Page, times: np.ndarray) -> Arrays:
        values = page.column(self.part.column or "").fill_null(0).to_numpy(zero_copy_only=False)
        return (values.astype(np.int64) ** 2,)

    def combine(self, a: Arrays, b: Arrays) -> Arrays:
        return (a[0] + b[0],)


class Or(Monoid):
    """Bits that are set in any of some integers, and how many integers."""

    def lift(self, given):
        return given[0], 1

    def combine(self, a, b):
        return a[0] | b[0], a[1] + b[1]


@register_accumulator("bits")
class Bits(Compiled):
    """The same as an accumulator, in compiled loops."""

    monoid = Or()
    identity = np.int64(0), np.int64(0)


@dataclass(frozen=True)
class _Of(Aggregation):
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def result_type(self, schema: Schema, what: str) -> pa.DataType:
        schema.require(self.columns, f"{what}: {self}")
        return pa.int64()


@register_accumulator("compiled squares")
class CompiledSquares(Compiled):
    """The squares again, by a monoid of the engine's own."""

    monoid = monoids.Checked()
    identity = (np.int64(0),)

    def prepare(self, page: Page, times: np.ndarray) -> Arrays:
        values, valid = super().prepare(page, times)
        return values.astype(np.int64) ** 2, valid


class CompiledSum(_Of):
    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("compiled squares", self.column),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        return pa.array(states[0][0], kind)


class SumOfSquares(_Of):
    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("squares of a test", self.column),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        return pa.array(states[0][0], kind)


class BitOr(_Of):
    def parts(self, schema: Schema) -> tuple[Part, ...]:
        return (Part("bits", self.column),)

    def result(self, states: Sequence[Arrays], kind: pa.DataType) -> pa.Array:
        bits, number = states[0]
        return pa.array(bits, kind, mask=number == 0)


def squares(of: list[dict[str, Any]]) -> int:
    return sum((row["v"] or 0) ** 2 for row in of)


def bits(of: list[dict[str, Any]]) -> int | None:
    known = [row["v"] for row in of if row["v"] is not None]
    return reduce(lambda a, b: a | b, known) if known else None


def most(of: list[dict[str, Any]]) -> int:
    return max((row["j"] for row in of), default=-1)


def lift(j):
    return (j.to_numpy().astype(np.int64),)


def larger(a, b):
    return (np.maximum(a[0], b[0]),)


def lower(state):
    return state[0]


MOST = UserDefined(lift, larger, lower, reads=("j",), state_types=("int64",), returns=pa.int64()
)  # fmt: skip
ASKED = {"q": SumOfSquares("v"), "b": BitOr("v"), "n": Count("v"), "most": MOST}
ORACLE = {"q": squares, "b": bits, "n": naive.aggregate("count", "v"), "most": most}
DOMAINS: dict[str, list[Any]] = {
    "ts": list(range(-30, 90)), "k": ["a", "b", None], "j": [0, 1, 2], "v": [-5, 0, 1, 6, None],
}  # fmt: skip
ARRIVALS = {"order": "its windows are on the order of arrival"}
THREE = {"ten": Sliding(10, 10), "fifteen": Sliding(15, 10), "thirty": Sliding(30, 5, 3)}
SPELT = {"ten": (10, 10, 0), "fifteen": (15, 10, 0), "thirty": (30, 5, 3)}
OWN = {name: ASKED[name] for name in ("b", "n")}  # of these compiled loops put windows together


def _slides(by: tuple[str, ...] = (), of: dict[str, Any] = ORACLE):
    return lambda inputs: naive.sliding(inputs[0], "ts", by, of, 20, 10)


test_law = contract_suite(
    [
        *(
            Case(
                how, WindowAggregate(Sliding(20, 10), ASKED, ("k",), strategy=how), (SCHEMA,), _slides(("k",)), DOMAINS
            )
            for how in ("auto", "windows", "panes", "adaptive")
        ),
        Case(
            "panes-compiled", WindowAggregate(Sliding(20, 10), OWN, ("k", "j")), (SCHEMA,),
            _slides(("k", "j"), {name: ORACLE[name] for name in OWN}), DOMAINS,
        ),
        Case(
            "slices", WindowAggregate(THREE, ASKED, ("k",)), (SCHEMA,),
            lambda inputs: many(inputs[0], "ts", ("k",), ORACLE, SPELT), DOMAINS,
        ),
        Case(
            "landmark", WindowAggregate(Landmark(10, -20), ASKED), (SCHEMA,),
            lambda inputs: naive.landmark(inputs[0], "ts", (), ORACLE, 10, -20), DOMAINS,
        ),
        Case(
            "rows", WindowAggregate(TupleBased(5, 2), ASKED), (SCHEMA,),
            lambda inputs: naive.sliding(naive.number(inputs[0]), "row", (), ORACLE, 5, 2), DOMAINS, ARRIVALS,
        ),
        Case(
            "rows-of-group", WindowAggregate(PartitionedTupleBased(3, 1), ASKED, ("k",)), (SCHEMA,),
            lambda inputs: naive.sliding(naive.number(inputs[0], ("k",)), "row", ("k",), ORACLE, 3, 1),
            DOMAINS, ARRIVALS,
        ),
    ],
    examples=3,
)  # fmt: skip


@pytest.mark.parametrize("strategy", ["auto", "panes", "adaptive"])
@settings(max_examples=15, deadline=None)
@given(data=st.data(), of=rows(), by=st.sampled_from([(), ("k",), ("k", "j")]))
def test_windows_are_those_of_the_definition(strategy, data, of, by):
    operator = WindowAggregate(Sliding(12, 5), ASKED, by, strategy=strategy)
    driver = Checked(operator, SCHEMA).play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(naive.sliding(of, "ts", by, ORACLE, 12, 5))


@settings(max_examples=15, deadline=None)
@given(data=st.data(), of=rows(), by=st.sampled_from([(), ("k",)]))
def test_so_are_slices_of_several_definitions(data, of, by):
    driver = Checked(WindowAggregate(THREE, ASKED, by), SCHEMA).play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(many(of, "ts", by, ORACLE, SPELT))


@settings(max_examples=10, deadline=None)
@given(of=rows())
def test_what_slides_over_a_column_is_not_taken_for_it(of):
    driver = Driver(WindowAggregate(TupleBased(5, 2), {"q": CompiledSum("v")}), SCHEMA)
    driver.feed(0, page(of))
    driver.feed(0, "end")
    expected = naive.sliding(naive.number(of), "row", (), {"q": squares}, 5, 2)
    assert multiset(driver.rows()) == multiset(expected)


@pytest.mark.parametrize(
    "rewrite", [lambda graph: graph, in_order, consolidated], ids=["as-is", "order", "halves"]
)
def test_rewrites_keep_them(rewrite):
    of = [
        {"ts": ts, "k": "ab"[ts % 2], "j": ts % 3, "v": ts - 9, "x": 0.0} for ts in (3, 1, 14, 9, 22, 18, 31)
    ]
    graph = Graph("outside")
    edge = graph.add("edge", Punctuate(BoundedDisorder(9), 5), graph.source("in", SCHEMA))
    graph.sink("out", graph.add("windows", WindowAggregate(Sliding(20, 10), ASKED, ("k",)), edge))
    got = run(rewrite(graph), {"in": [page(of)]}, check=True).results["out"].to_pylist()
    assert multiset(got) == multiset(naive.sliding(of, "ts", ("k",), ORACLE, 20, 10))


def test_many_groups_are_put_together_at_once():
    """By a sweep over the rows of the panes."""
    of = [{"ts": ts % 40, "k": str(ts % 500), "j": ts % 3, "v": ts % 64, "x": 0.0} for ts in range(8000)]
    driver = Driver(WindowAggregate(Sliding(20, 10), ASKED, ("k",), strategy="panes"), SCHEMA)
    driver.feed(0, page(of))
    driver.feed(0, "end")
    assert multiset(driver.rows()) == multiset(naive.sliding(of, "ts", ("k",), ORACLE, 20, 10))
