"""Mistakes in policies, triggers, aggregates and windows of others: each is named with its part and method."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import ContractError, EngineError, Graph, GraphError, Schema, run
from oop_engine.aggregates import UserDefined
from oop_engine.extend import Folding, Policy, RunningBound, Trigger
from oop_engine.operators import BoundedDisorder, Count, Emit, Punctuate, Tumbling, WindowAggregate
from oop_engine.operators.triggers import AfterAny
from oop_engine.operators.windows import Due
from oop_engine.policies import Lag
from oop_engine.windows import UserWindows

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
ROWS = [{"ts": ts, "k": "ab"[ts % 2], "v": ts} for ts in (3, 1, 12, 9, 30, 25)]
BATCHES = [pa.RecordBatch.from_pylist([row], schema=SCHEMA.fields) for row in ROWS]
Mistake = tuple[Callable[[], Any], type[EngineError], str]


def result(policy: Any = None, windows: Any = None, aggregate: Any = None, **more: Any) -> Any:
    graph = Graph("g")
    edge = graph.add("edge", Punctuate(policy or BoundedDisorder(5)), graph.source("log", SCHEMA))
    count = WindowAggregate(windows or Tumbling(10), {"n": aggregate or Count()}, by=("k",), **more)
    graph.sink("out", graph.add("agg", count, edge))
    return run(graph, {"log": BATCHES if more else ROWS}).results["out"]


def lag(found: Any) -> Callable[[], Any]:
    return lambda: result(type("Mine", (Lag,), {"lag": lambda self, schema, place: found})())


def failing(*_: Any) -> Any:
    raise ValueError("no")


def running(found: Any) -> Callable[[], Any]:
    return lambda: result(type("Mine", (Policy,), {"running": lambda self, schema, place: found})())


def after(found: Callable[[Any], Any], **members: Any) -> Callable[[], Any]:
    kind = type("Bound", (RunningBound,), {"after": lambda self, page: found(page.times), **members})
    return lambda: running(kind())()


LAG = "node 'edge': Punctuate: Mine.lag must return (count, slack), a number of tuples, from 0 to 2**30, and of s"
BOUND = "Bound: after must return the bound after each row, int64 (6,); got "
POLICIES: dict[str, Mistake] = {
    **{
        f"lag {found!r}": (lag(found), GraphError, LAG)
        for found in (5, None, (0, 5.5), (0, "5 s"), (0, -5), (-1, 5), (0, 1, 2), (0, True), [0, 5], (2**40, 0))
    },
    "lag of a length": (lag((0, datetime.timedelta(seconds=5))), GraphError, LAG),
    "lag fails": (
        lambda: result(type("Mine", (Lag,), {"lag": failing})()), GraphError, "Punctuate: Mine.lag failed: ValueError:",
    ),
    "lag without parameters": (
        lambda: result(type("Mine", (Lag,), {"lag": lambda self: (0, 5)})()), GraphError, "Mine.lag failed: TypeError",
    ),
    "running none": (running(None), GraphError, "Mine.running must return a RunningBound; got None (NoneType)"),
    "running class": (running(RunningBound), GraphError, "Mine.running must return a RunningBound; got <class"),
    "after none": (after(lambda times: None), ContractError, f"{BOUND}None"),
    "after one": (after(lambda times: int(times.max())), ContractError, f"{BOUND}int64 ()"),
    "after few": (after(lambda times: times[:1]), ContractError, f"{BOUND}int64 (1,)"),
    "after floats": (after(lambda times: np.maximum.accumulate(times) - 0.5), ContractError, f"{BOUND}float64 (6,)"),
    "after falls": (after(lambda times: times - 5), ContractError, "bounds that never decrease; got -4 behind -2, at "),
    "clock": (after(lambda times: times, clock_every="1 s"), GraphError, "Bound: clock_every must be None, or a whole"),
}  # fmt: skip


def trigger(fires: Callable[[Any, Any], Any], **members: Any) -> Callable[[], Any]:
    kind = type("Mine", (Trigger,), {"fires": lambda self, view, state: fires(view, state), **members})
    return lambda: result(emit=Emit(early=kind()))


def within(fires: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    kind: Any = type("Mine", (Trigger,), {"fires": lambda self, view, state: fires(view, state)})
    return lambda: result(emit=Emit(early=AfterAny(kind(), kind())))


def writing(view: Any, state: Any) -> Any:
    state[:] = 9
    return view.since > 0


FIRES, WIDTH = (
    "Mine: fires must return a mask of the windows, bool (1,); got ",
    "Mine: width must be a number of columns",
)
ONE: dict[str, Any] = {"width": 1, "adds": (False,)}
TRIGGERS: dict[str, Mistake] = {
    "none": (trigger(lambda view, state: None), ContractError, f"{FIRES}None (NoneType)"),
    "few": (trigger(lambda view, state: np.zeros(0, bool)), ContractError, f"{FIRES}array([], dtype=bool)"),
    "rows": (trigger(lambda view, state: np.flatnonzero(view.since)), ContractError, f"{FIRES}array([0])"),
    "of others": (within(lambda view, state: None), ContractError, f"{FIRES}None (NoneType)"),
    "width": (trigger(lambda view, state: True, width="1"), GraphError, WIDTH),
    "adds": (trigger(lambda view, state: True, width=1), GraphError, f"{WIDTH}, and adds a tuple of as many bools"),
    "after": (
        trigger(lambda view, state: True, after=lambda self, view, state, asked: view.since, **ONE), ContractError,
        "Mine: after must return the state of windows, int64 (1, 1); got int64 (1,)",
    ),
    "after none": (
        trigger(lambda view, state: True, after=lambda self, view, state, asked: None, **ONE), ContractError,
        "Mine: after must return the state of windows, int64 (1, 1); got NoneType",
    ),
    "writes": (trigger(writing, **ONE), EngineError, "assignment destination is read-only"),
    "check": (trigger(lambda view, state: True, check=failing), GraphError, "node 'agg' (WindowAggregate): output_sch"),
}  # fmt: skip


def user(**functions: Any) -> Callable[[], Any]:
    given: dict[str, Any] = {
        "lift": lambda v: (v.to_numpy(),), "combine": lambda a, b: (a[0] + b[0],), "lower": lambda state: state[0],
        "reads": ("v",), "state_types": ("int64",), "returns": pa.int64(),
    }  # fmt: skip
    return lambda: result(aggregate=UserDefined(**given | functions))


LIFT, COMBINE = (
    "UserDefined: lift must return a tuple of 1 array of 6 values",
    "UserDefined: combine must return a tuple",
)
AGGREGATES: dict[str, Mistake] = {
    "lift array": (user(lift=lambda v: v.to_numpy()), ContractError, f"{LIFT}, as state_types has them; got array("),
    "lift none": (user(lift=lambda v: None), ContractError, LIFT),
    "lift two": (user(lift=lambda v: (v.to_numpy(), v.to_numpy())), ContractError, "got tuple of 2"),
    "lift few": (user(lift=lambda v: (v.to_numpy()[:1],)), ContractError, "got shapes (1,)"),
    "lift one": (user(lift=lambda v: (5,)), ContractError, "got shapes ()"),
    "combine none": (user(combine=lambda a, b: None), ContractError, COMBINE),
    "combine array": (user(combine=lambda a, b: a[0] + b[0]), ContractError, COMBINE),
    "combine few": (user(combine=lambda a, b: ((a[0] + b[0])[:0],)), ContractError, "got shapes (0,)"),
    "lower none": (user(lower=lambda state: None), ContractError, "UserDefined: lower must return an array of 2 resul"),
    "lower state": (user(lower=lambda state: state), ContractError, "UserDefined: lower must return an array of 2 res"),
    "lower few": (user(lower=lambda state: state[0][:1]), ContractError, "a result for each of 2 states; got 1"),
    "lower many": (user(lower=lambda s: np.concatenate([s[0], s[0]])), ContractError, "for each of 2 states; got 4"),
    "lower halves": (user(lower=lambda state: state[0] * 0.5), ContractError, "results that are int64, as returns has"),
    "lift masked": (user(lift=lambda v: (np.ma.array(v.to_numpy(), mask=v.to_numpy() > 1),)), ContractError, "masked"),
    "lift nulls": (user(lift=lambda v: (pa.nulls(len(v)),), state_types=("float64",)), ContractError, "null values"),
    "lift large": (user(lift=lambda v: (v.to_numpy() * 1e300,), state_types=("float32",)), ContractError, "would cut"),
    "identity": (user(identity=(0.5,)), GraphError, "identity has 0.5, which is no int64: give a value of that type"),
    "identity large": (user(identity=(300,), state_types=("int8",)), GraphError, "which is no int8"),
    "lower true": (user(lower=lambda state: state[0] + 2, returns=pa.bool_()), ContractError, "is no bool"),
    "lower large": (user(lower=lambda s: s[0] * 0 + 1e300, returns=pa.float32()), ContractError, "too large for float"),
    "types": (user(state_types=("integer",)), GraphError, "state types must be numbers or booleans; got 'integer'"),
}  # fmt: skip


@dataclass(frozen=True)
class Pairs(Folding):
    """Two tuples each."""

    counts = True

    def bound(self, schema: Schema, place: str = "Pairs") -> Any:
        return self

    def words(self) -> str:
        return "two tuples each"

    def places(self, final: Any) -> Any:
        return final.ranks // 2

    def due(self, view: Any) -> Any:
        full = 2 * view.places + 2 <= view.done[view.groups]
        rows = np.flatnonzero(full | view.ended[view.groups])
        keep = view.begins[1:] - (view.done % 2 == 1)
        ends = view.last[rows] + 1
        return Due(view.groups[rows], view.first[rows], ends, rows, rows + 1, keep, view.cut)


def pairs(**methods: Any) -> Callable[[], Any]:
    return lambda: result(windows=type("Mine", (Pairs,), methods)())


def due(**columns: Any) -> Callable[[], Any]:
    return pairs(
        due=lambda self, view: Pairs().due(view)._replace(**{n: of(view) for n, of in columns.items()})
    )


def cut(function: Any) -> Callable[[], Any]:
    return lambda: result(windows=UserWindows(function))


class NoBound(Folding):
    def words(self) -> str:
        return ""

    def places(self, final: Any) -> Any: ...

    def due(self, view: Any) -> Any: ...


PLACES = "Mine: places must return the slice of each final tuple, int64 (4,); got "
WINDOWS: dict[str, Mistake] = {
    "no bound": (lambda: result(windows=NoBound()), GraphError, "write bound(self, schema, place), which returns self"),
    "bound none": (pairs(bound=lambda self, s, place: None), GraphError, "Mine.bound must return a definition of wind"),
    "bound parameters": (pairs(bound=lambda self, s: self), GraphError, "node 'agg' (WindowAggregate): output_schemas"),
    "places none": (pairs(places=lambda self, final: None), ContractError, f"{PLACES}None (NoneType)"),
    "places few": (pairs(places=lambda self, final: final.ranks[:1]), ContractError, f"{PLACES}int64 (1,)"),
    "places floats": (pairs(places=lambda self, final: final.ranks / 2), ContractError, f"{PLACES}float64 (4,)"),
    "places fall": (pairs(places=lambda self, final: 100 - final.ranks), ContractError, "that ascend within a group; "),
    "due none": (pairs(due=lambda self, view: None), ContractError, "Mine: due must return a Due(groups, starts, ends"),
    "due tuple": (pairs(due=lambda self, view: ([], [])), ContractError, "Mine: due must return a Due(groups, starts"),
    "due rows": (due(high=lambda view: np.array([10**6])), ContractError, "due must return high from 0 to 2; got 1000"),
    "due low": (due(low=lambda view: np.array([-1])), ContractError, "due must return low from 0 to"),
    "due groups": (due(groups=lambda view: np.array([10**6])), ContractError, "due must return groups from 0 to 1"),
    "due keep few": (due(keep=lambda view: view.begins[:1]), ContractError, "keep of each group, int64 (2,); got int6"),
    "due keep": (due(keep=lambda view: view.begins[1:] + 10**6), ContractError, "due must return keep from 0 to 2"),
    "due cut": (due(cut=lambda view: None), ContractError, "cut of each group, int64 (2,); got None"),
    "due floats": (due(starts=lambda view: np.array([0.5])), ContractError, "starts of each window, int64 (1,); got f"),
    "next due": (pairs(next_due=lambda self, view: np.array([1])), ContractError, "next_due must return the least bou"),
    "cut none": (cut(lambda *given: None), ContractError, "cut must return starts and ends, integers; got None"),
    "cut pairs": (cut(lambda *given: [(0, 10)]), ContractError, "cut must return starts and ends, integers; got [(0, "),
    "cut floats": (cut(lambda *given: ([0.5], [10.0])), ContractError, "cut must return starts and ends, integers"),
    "cut writes": (cut(lambda times, *given: times.fill(0)), EngineError, "read-only"),
}  # fmt: skip
ALL = {
    f"{kind}: {name}": mistake
    for kind, mistakes in {
        "policy": POLICIES, "trigger": TRIGGERS, "aggregate": AGGREGATES, "windows": WINDOWS
    }.items()
    for name, mistake in mistakes.items()
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_a_mistake_is_named_with_its_part(name: str) -> None:
    make, kind, words = ALL[name]
    with pytest.raises(kind) as caught:
        make()
    assert words in str(caught.value)
    assert "'edge'" in str(caught.value) or "'agg'" in str(caught.value) or words.startswith(WIDTH)


def test_right_parts_are_taken() -> None:
    assert pairs()().num_rows == 3
    assert cut(lambda *given: ([], []))().num_rows == 0
    assert (
        trigger(lambda view, state: True)().num_rows == trigger(lambda view, state: view.since > 0)().num_rows
    )
    assert (
        user()().num_rows
        == after(lambda times: (np.maximum.accumulate(times) - 5).astype(np.int32))().num_rows
    )
    assert lag((np.int64(0), np.int64(5)))().num_rows == 4
