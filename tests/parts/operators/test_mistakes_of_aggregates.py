"""Aggregates and accumulators of others: usual mistakes have a sentence at build time or at the first page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import ContractError, EngineError, Graph, GraphError, Page, Schema, UsageError, run
from oop_engine.extend import Accumulator, Aggregation, Part, register_accumulator
from oop_engine.operators import BoundedDisorder, Punctuate, Sliding, Tumbling, WindowAggregate

SCHEMA = Schema({"ts": pa.int64(), "host": pa.string(), "bytes": pa.int64()}, "ts", "s")
ROWS = [{"ts": ts, "host": "ab"[ts % 2], "bytes": ts} for ts in (3, 1, 8, 5, 12, 9, 21, 17, 30, 26)]
N = np.int64


class Total(Accumulator):
    identity = (N(0),)

    def prepare(self, page: Page, times: Any) -> Any:
        return (page.column("bytes").to_numpy(zero_copy_only=False).astype(N),)

    def combine(self, a: Any, b: Any) -> Any:
        return (a[0] + b[0],)


class OfTotal(Aggregation):
    columns = ("bytes",)
    kind: str

    def result_type(self, schema: Schema, operator: str) -> Any:
        return pa.int64()

    def parts(self, schema: Schema) -> Any:
        return (Part(self.kind, "bytes"),)

    def result(self, states: Any, kind: pa.DataType) -> Any:
        return pa.array(states[0][0], kind)


async def awaited(self: Any, page: Any, times: Any) -> Any: ...


def found(of_part: dict[str, Any], of_aggregate: dict[str, Any], windows: Any = None) -> list[dict[str, Any]]:
    kind = f"of a test {len(of_part)} {sorted(of_part)}"
    register_accumulator(kind)(type("Mine", (Total,), of_part))
    aggregate = type("OfMine", (OfTotal,), {"kind": kind, **of_aggregate})()
    graph = Graph("g")
    edge = graph.add("edge", Punctuate(BoundedDisorder(5)), graph.source("log", SCHEMA))
    window = WindowAggregate(windows or Tumbling(10), {"x": aggregate}, by=("host",))
    graph.sink("out", graph.add("agg", window, edge))
    rows: list[dict[str, Any]] = run(graph, {"log": ROWS}, check=True).table.to_pylist()
    return rows


IDENTITY = r"identity must be the state of no values, a tuple of NumPy scalars, one a column; got "
STATES = r"must return the columns of states, a tuple of 1 NumPy arrays of \d+ values of int64, as identity .*; got "
RESULT = r"OfMine: result must return an array of 4 values of int64; got "
MISTAKES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "identity None": ({"identity": None}, {}, IDENTITY + "None"),
    "identity of Python": ({"identity": (0,)}, {}, IDENTITY + r"\(0,\): write identity = \(np.int64\(0\),\)"),
    "identity bare": ({"identity": N(0)}, {}, IDENTITY),
    "identity array": ({"identity": (np.zeros(1),)}, {}, IDENTITY),
    "identity empty": ({"identity": ()}, {}, IDENTITY),
    "identity text": ({"identity": ("x",)}, {}, IDENTITY),
    "prepare None": ({"prepare": lambda s, p, t: None}, {}, f"prepare {STATES}None"),
    "prepare array": ({"prepare": lambda s, p, t: np.zeros(len(p), N)}, {}, f"prepare {STATES}an array of 10 int64"),
    "prepare one row": ({"prepare": lambda s, p, t: (np.zeros(1, N),)}, {}, f"prepare {STATES}.an array of 1 int64"),
    "prepare two": ({"prepare": lambda s, p, t: (np.zeros(len(p), N),) * 2}, {}, f"prepare {STATES}"),
    "prepare list": ({"prepare": lambda s, p, t: ([1] * len(p),)}, {}, f"prepare {STATES}"),
    "prepare Arrow": ({"prepare": lambda s, p, t: (p.column("bytes"),)}, {}, f"prepare {STATES}"),
    "prepare floats": ({"prepare": lambda s, p, t: (np.full(len(p), 1.5),)}, {}, f"prepare {STATES}.an array of 10 fl"),
    "prepare async": ({"prepare": awaited}, {}, f"prepare {STATES}.*coroutine"),
    "combine None": ({"combine": lambda s, a, b: None}, {}, f"combine {STATES}None"),
    "combine array": ({"combine": lambda s, a, b: a[0] + b[0]}, {}, f"combine {STATES}an array"),
    "combine floats": ({"combine": lambda s, a, b: (a[0] * 1.5,)}, {}, f"combine {STATES}.an array of .* float64"),
    "combine one row": ({"combine": lambda s, a, b: (np.zeros(1, N),)}, {}, f"combine {STATES}.an array of 1 int64"),
    "combine scalar": ({"combine": lambda s, a, b: (5,)}, {}, f"combine {STATES}.5 .int"),
    "combine two": ({"combine": lambda s, a, b: (a[0], b[0])}, {}, f"combine {STATES}"),
    "result None": ({}, {"result": lambda s, st, k: None}, RESULT + "None"),
    "result floats": ({}, {"result": lambda s, st, k: pa.array([1.5] * len(st[0][0]))}, RESULT + ".*truncated"),
    "result one row": ({}, {"result": lambda s, st, k: pa.array([1], k)}, RESULT + "1 values of int64"),
    "type None": ({}, {"result_type": lambda s, c, p: None}, "result_type must return a type of Arrow"),
    "type of Python": ({}, {"result_type": lambda s, c, p: int}, "result_type must return a type of Arrow"),
    "no parts": ({}, {"parts": lambda s, c: ()}, "parts must return a tuple of one Part or more; got "),
    "one part": ({}, {"parts": lambda s, c: Part("sum", "bytes")}, r"parts must .*: write \(part,\)"),
    "names of parts": ({}, {"parts": lambda s, c: ("sum",)}, "parts must return a tuple of one Part"),
    "parts None": ({}, {"parts": lambda s, c: None}, "parts must return a tuple of one Part"),
    "part of no column": ({}, {"parts": lambda s, c: (Part("sum", "byts"),)}, "OfMine: no column 'byts'.*mean bytes"),
    "part unknown": ({}, {"parts": lambda s, c: (Part("nope", "bytes"),)}, "got 'nope': register_accumulator"),
    "columns a text": ({}, {"columns": "bytes"}, "columns must be a tuple of the names of columns that it reads"),
    "columns unknown": ({}, {"columns": ("byts",)}, "OfMine: no column 'byts'"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake: str) -> None:
    of_part, of_aggregate, words = MISTAKES[mistake]
    with pytest.raises(EngineError, match=words) as caught:
        found(of_part, of_aggregate)
    assert isinstance(caught.value, GraphError | ContractError)


@pytest.mark.parametrize("windows", [Tumbling(10), Sliding(20, 10)], ids=["tumbling", "sliding"])
@pytest.mark.parametrize(
    "right",
    [
        {},
        {"identity": [N(0)]},
        {"prepare": lambda s, p, t: [p.column("bytes").to_numpy().astype(np.int32)]},
        {"combine": lambda s, a, b: [a[0] + b[0]]},
    ],
    ids=["as-it-is", "identity-list", "prepare-int32", "combine-list"],
)
def test_other_right_forms_are_taken(right: dict[str, Any], windows: Any) -> None:
    assert found(right, {}, windows) == found({}, {}, windows)


@pytest.mark.parametrize("result", [lambda s, st, k: st[0][0], lambda s, st, k: st[0][0].tolist()])
def test_results_are_also_arrays_and_lists(result: Callable[..., Any]) -> None:
    assert found({}, {"result": result}) == found({}, {})


def test_a_class_that_is_registered_again_is_used() -> None:
    """As in a cell of a notebook that runs again."""
    assert found({}, {}) != found({"combine": lambda s, a, b: (np.maximum(a[0], b[0]),)}, {})
    assert found({"combine": lambda s, a, b: (a[0] + b[0],)}, {}) == found({}, {})


def test_only_classes_are_registered_under_names() -> None:
    of_class: Any = register_accumulator
    with pytest.raises(UsageError, match=r"write @register_accumulator\('name'\)"):
        of_class(Total)
    with pytest.raises(UsageError, match="must be above a class derived from Accumulator"):
        of_class("a name of a test")(lambda part: None)
