from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Graph, Linear, Page, Schema, Watermark, replay
from oop_engine.lab.corrected import Heard
from oop_engine.lab.replaced import Replaced
from oop_engine.operators import Count, Emit, Sliding, Sum, WindowAggregate
from oop_engine.operators.triggers.emit import Mode
from oop_engine.triggers import AfterCount

S = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
KEYS = ("k", "window_end")


def page(*rows: tuple[int, str, int]) -> Page:
    return Page.of(S, {name: [row[i] for row in rows] for i, name in enumerate(S.names)})


FEED = [
    page((1, "a", 1), (3, "b", 2), (12, "a", 3)),
    page((4, "a", -5)),
    Watermark(Linear(10)),
    page((7, "b", 0), (8, "a", 9), (15, "a", 1)),
    Linear(10),
    page((11, "b", 4)),
]


@pytest.mark.parametrize("info", [False, True])
def test_every_mode_has_the_same_first_and_final_answers(info: bool) -> None:
    def corrected(mode: Mode) -> tuple[list[Any], list[Any], int]:
        emit = Emit(early=AfterCount(1), mode=mode, info=info)
        graph = Graph("versions")
        windows = WindowAggregate(Sliding(10, 5), {"n": Count(), "s": Sum("v")}, ("k",), emit=emit)
        graph.sink("out", graph.add("windows", windows, graph.source("in", S)))
        plan = graph.plan()
        heard = Heard.of(plan, plan.of_kind("sink")[0], KEYS, None)
        assert heard is not None
        replay(graph, {"in": FEED}, watch=heard)
        first, final, revised = heard.corrected()
        names = ["k", "window_start", "window_end", "n", "s"]
        rows = [
            [
                (*row.values(), at)
                for row, at in zip(some.table.select(names).to_pylist(), some.at, strict=True)
            ]
            for some in (first, final)
        ]
        return sorted(rows[0]), sorted(rows[1]), revised

    retracting = corrected("retracting")
    assert retracting[2] > 4
    assert retracting[0] != retracting[1]
    assert corrected("accumulating") == corrected("discarding") == retracting


def test_rows_of_one_key_in_a_page_replace_each_other() -> None:
    replaced = Replaced(S, ("k",), ["v"])
    given = page((1, "a", 1), (2, "b", 2), (3, "a", 4))
    found = [tuple(row.values()) for changes in replaced.changes(given) for row in changes.to_pylist()]
    assert found == [(1, "a", 1, 1), (2, "b", 2, 1), (1, "a", 1, -1), (3, "a", 5, 1)]
