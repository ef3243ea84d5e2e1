"""Operators of others: methods that tell how a graph may be rewritten are tried when it is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, GraphError, Operator, Page, Schema
from oop_engine.core.operator import Emission

SCHEMA = Schema({"ts": pa.int64(), "host": pa.string()}, "ts", "s")


class Passes(Operator):
    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        yield 0, page


def build(method: str, answer: Any) -> None:
    graph = Graph("g")
    body = {method: answer if callable(answer) else lambda *given: answer}
    graph.add("mine", type("Mine", (Passes,), body)(), graph.source("log", SCHEMA))


WRONG: dict[str, list[Any]] = {
    "reads": [None, "host", [frozenset(["hosts"])], frozenset(["host"]), ["host"], [{"host"}, {"ts"}], [], 5],
    "partition_keys": ["host", ["host"], [("hosts",)], {("host",)}, (("host",),), 5, [[("host",)]], [("ts", "host")]],
    "keeps_order": [None, "yes", 1],
    "uses_arrival": [None, "no", 0],
    "lineage": [None, "host", 3, ("hosts",), (None, None)],
}  # fmt: skip
CASES = [(method, number) for method, answers in WRONG.items() for number in range(len(answers))]


@pytest.mark.parametrize(("method", "number"), CASES)
def test_a_wrong_answer_is_named(method: str, number: int) -> None:
    words = rf"node 'mine' \(Mine\): {method} must return .*; got .*; the columns are ts, host"
    with pytest.raises(GraphError, match=words):
        build(method, WRONG[method][number])


@pytest.mark.parametrize("method", WRONG)
def test_a_method_that_fails_is_named(method: str) -> None:
    with pytest.raises(GraphError, match=rf"node 'mine' \(Mine\): {method} failed: ZeroDivisionError"):
        build(method, lambda *given: 1 / 0)
    with pytest.raises(GraphError, match=rf"node 'mine' \(Mine\): {method} failed: TypeError"):
        build(method, lambda: None)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("reads", (frozenset(["host"]),)),
        ("reads", [{"host", "ts"}]),
        ("reads", (frozenset(),)),
        ("partition_keys", None),
        ("partition_keys", []),
        ("partition_keys", [("host",), ("ts",)]),
        ("keeps_order", True),
        ("uses_arrival", False),
        ("lineage", (None,)),
        ("lineage", ("host",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_right_answers_are_taken(method: str, answer: Any) -> None:
    build(method, answer)
