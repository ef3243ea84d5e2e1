"""The two halves of window aggregation for the contract suite."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from oop_engine import Schema
from oop_engine.operators.aggregates import Avg, Count, First, Max, Sum, Var
from oop_engine.operators.levels.consolidate import Consolidate
from oop_engine.operators.levels.low_level_aggregate import LowLevelAggregate
from oop_engine.operators.levels.partial_aggregate import PartialAggregate
from oop_engine.operators.values.flush import InOrder, Slow
from oop_engine.operators.windows import Session, Sliding, Tumbling, Windows
from tests.cases import Case, Row
from tests.naive import windows as naive

__all__ = ["CASES"]

SCHEMA = Schema(
    {"ts": pa.int64(), "k": pa.string(), "j": pa.int32(), "v": pa.int64(), "x": pa.float64()}, "ts", "s"
)
DOMAINS: dict[str, list[Any]] = {"ts": list(range(-30, 90)), "k": ["a", "b", None], "j": [0, 1, 2]}
# States as they come from a first half: 1 to 3 tuples, of which 0 to 2 have a value.
ROWS: dict[str, list[Any]] = {
    "pane_start": list(range(-30, 90, 10)), "k": ["a", "b", None],
    "state0_count": [1, 2, 3], "state1_carried_0": [-5, 0, 7], "state1_carried_1": [0], "state2_count": [0, 1, 2],
}  # fmt: skip
# A sum is a word that wraps and how often it did: sums that did are tried where they fit in the end (exact sums).
MANY = {"n": Count(), "s": Sum("v"), "avg": Avg("x"), "hi": Max("v"), "f": First("v"), "var": Var("x")}
TABLE = (
    "which rows there are depends on the order in which places of the table were needed; their sums do not"
)
BY_TABLE = {"oracle": TABLE, "order": TABLE, "division": TABLE}
PAGES = "its output is a row a page, group and pane: the rows of all pages together are what counts"
BY_PAGES = {"oracle": PAGES, "order": PAGES, "cuts": PAGES, "division": PAGES}
TWO = {"n": Count(), "s": Sum("v")}


RUNS = {name: values for name, values in ROWS.items() if name != "pane_start"} | {
    "run_first": list(range(-30, 90)), "run_last": list(range(90, 95)),
}  # fmt: skip


def _merged(of: list[Row], *, empty: bool = False, range: int = 20) -> list[Row]:
    """The counts and sums of the windows, from those of the panes."""
    functions = {
        "n": lambda rows: sum(row["state0_count"] for row in rows),
        "s": lambda rows: (
            sum(row["state1_carried_0"] for row in rows) if any(row["state2_count"] for row in rows) else None
        ),
    }
    return naive.sliding(of, "pane_start", ("k",), functions, range, 10, empty=empty)


def _merged_runs(of: list[Row]) -> list[Row]:
    """The session of each key: its runs are made so that all of them overlap."""
    results = []
    for key in {row["k"] for row in of}:
        runs = [row for row in of if row["k"] == key]
        values = any(row["state2_count"] for row in runs)
        results.append({
            "k": key, "window_start": min(row["run_first"] for row in runs),
            "window_end": max(row["run_last"] for row in runs) + 7, "n": sum(row["state0_count"] for row in runs),
            "s": sum(row["state1_carried_0"] for row in runs) if values else None,
        })  # fmt: skip
    return results


def _second(windows: Windows, **more: Any) -> tuple[Consolidate, tuple[Schema]]:
    first = PartialAggregate(windows, TWO, ("k",))
    [schema] = first.output_schemas((SCHEMA,))
    return Consolidate(windows, TWO, ("k",), tuples=SCHEMA, **more), (schema,)


CASES = [
    Case(
        "partial-sliding", PartialAggregate(Sliding(20, 10), MANY, ("k", "j")), (SCHEMA,),
        lambda inputs: [], DOMAINS, BY_PAGES,
    ),
    Case(
        "partial-gaps", PartialAggregate(Sliding(7, 12, 2), {"n": Count()}), (SCHEMA,),
        lambda inputs: [], DOMAINS, BY_PAGES,
    ),
    Case(
        "partial-sessions", PartialAggregate(Session(7), MANY, ("k", "j")), (SCHEMA,),
        lambda inputs: [], DOMAINS, BY_PAGES,
    ),
    Case(
        "low-level-lazy", LowLevelAggregate(Sliding(20, 10), MANY, ("k", "j"), slots=3), (SCHEMA,),
        lambda inputs: [], DOMAINS, BY_TABLE,
    ),
    Case(
        "low-level-slow", LowLevelAggregate(Tumbling(10), TWO, ("k", "j"), slots=5, flush=Slow(2, 3), probe=True),
        (SCHEMA,), lambda inputs: [], DOMAINS, BY_TABLE,
    ),
    Case(
        "low-level-in-order", LowLevelAggregate(Tumbling(10), TWO, ("j",), slots=2, flush=InOrder()), (SCHEMA,),
        lambda inputs: [], DOMAINS, BY_TABLE,
    ),
    Case(
        "consolidate-sessions", *_second(Session(7)), lambda inputs: _merged_runs(inputs[0]), RUNS,
    ),
    Case(
        "consolidate-sliding", *_second(Sliding(20, 10)), lambda inputs: _merged(inputs[0]), ROWS,
    ),
    Case(
        "consolidate-tumbling-start", *_second(Tumbling(10), stamp="start"),
        lambda inputs: _merged(inputs[0], range=10), ROWS,
    ),
    Case(
        "consolidate-empty", *_second(Sliding(20, 10), empty=True),
        lambda inputs: _merged(inputs[0], empty=True), ROWS,
    ),
]  # fmt: skip
