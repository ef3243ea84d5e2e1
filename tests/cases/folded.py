"""Windows that are folded on the bound, for the contract suite."""

from __future__ import annotations

from collections.abc import Callable

from oop_engine.operators import Count, PartitionedTupleBased, Sum, TupleBased, WindowAggregate
from tests.cases import Case, Row
from tests.cases.windows import COUNT, DOMAINS, FUNCTIONS, MANY, SCHEMA, SUM
from tests.naive import folded as naive

__all__ = ["CASES"]

SOME = {"n": Count(), "s": Sum("v")}
ALL = ("k", "j", "v", "x")
TIES = {"order": "of tuples of one time, and no column to tell them apart, the first to arrive is the first"}


def _of(function: Callable[[list[Row]], list[Row]]) -> Callable[[list[list[Row]]], list[Row]]:
    return lambda inputs: function(inputs[0])


CASES = [
    Case(
        "ranked", WindowAggregate(TupleBased(5, 2, order="time", tie=ALL), MANY), (SCHEMA,),
        _of(lambda of: naive.ranked(of, (), FUNCTIONS, 5, 2, ALL, grouped=False)), DOMAINS,
    ),
    Case(
        "ranked-by", WindowAggregate(TupleBased(4, 6, order="time", tie=ALL), SOME, ("k",), stamp="start"), (SCHEMA,),
        _of(lambda of: naive.ranked(of, ("k",), COUNT | SUM, 4, 6, ALL, grouped=False)), DOMAINS,
    ),
    Case(
        "ranked-of-group", WindowAggregate(PartitionedTupleBased(3, 1, order="time", tie=ALL), MANY, ("k",)), (SCHEMA,),
        _of(lambda of: naive.ranked(of, ("k",), FUNCTIONS, 3, 1, ALL, grouped=True)), DOMAINS,
    ),
    Case(
        "ranked-as-they-came", WindowAggregate(PartitionedTupleBased(2, 5, order="time"), SOME, ("k", "j")), (SCHEMA,),
        _of(lambda of: naive.ranked(of, ("k", "j"), COUNT | SUM, 2, 5, grouped=True)), DOMAINS, TIES,
    ),
]  # fmt: skip
