from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa

from oop_engine import Schema
from oop_engine.operators.edge.guard import Guard
from oop_engine.operators.edge.prune_punctuation import PrunePunctuation
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.in_order.merge import Merge
from oop_engine.operators.in_order.sort import Sort
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.late import Late
from oop_engine.operators.policies.policies import (
    BoundedCount,
    BoundedDisorder,
    Heartbeat,
    Ordered,
    PerGroup,
    Upstream,
)
from oop_engine.operators.policies.timer import Timer
from tests.cases import Case, Row
from tests.naive.progress import guard_by_stream

PLAIN = Schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int32()}, "ts", "s")
STAMPED = Schema({"ts": pa.timestamp("ms"), "k": pa.string(), "x": pa.float64()}, "ts")
ALL_AT_ONCE = {"ts": [7]}  # sorted in every order of arrival
FAR = {"ts": [0, 3, 9, 20, 100_000, 100_003, 200_000]}
BY_ORDER = "what is far ahead of the stream depends on what came before, by its definition"


def everything(inputs: list[list[Row]]) -> list[Row]:
    return [row for rows in inputs for row in rows]


def stamped(inputs: list[list[Row]]) -> list[Row]:
    return [
        {**row, "ts": datetime(1970, 1, 1) + timedelta(milliseconds=row["ts"])} for row in everything(inputs)
    ]


def near(inputs: list[list[Row]]) -> list[Row]:
    return [row for row in inputs[0] if row["ts"] < 1000]


def accepted(limit: int, patience: int | None):
    return lambda inputs: guard_by_stream(inputs[0], limit, patience)[0]


GENERATORS = [
    Case("punctuate-ordered", Punctuate(Ordered(), 5), (PLAIN,), everything, ALL_AT_ONCE),
    Case("punctuate-disorder", Punctuate(BoundedDisorder(30), 5), (PLAIN,), everything),
    Case("punctuate-page_ends", Punctuate(BoundedDisorder("30 ms")), (STAMPED,), stamped),
    Case("punctuate-count", Punctuate(BoundedCount(10), 2, Late.RAISE), (PLAIN,), everything),
    Case("punctuate-upstream", Punctuate(Upstream(), late=Late.DIVERT), (PLAIN,), everything),
    Case(
        "punctuate-groups",
        Punctuate(PerGroup(BoundedDisorder(30), ("k", "n")), 3, Late.DIVERT),
        (PLAIN,),
        everything,
    ),
    Case(
        "punctuate-groups_and_stream",
        Punctuate(PerGroup(BoundedCount(10), ("k",), linear=BoundedDisorder(30)), 3),
        (PLAIN,),
        everything,
    ),
    Case(
        "punctuate-heartbeat",
        Punctuate(Heartbeat(BoundedDisorder(30), threshold=2, slack=60), 5),
        (PLAIN,),
        everything,
    ),
    Case("sort-ordered", Sort(Ordered(), 5), (PLAIN,), everything, ALL_AT_ONCE),
    Case("sort-disorder", Sort(BoundedDisorder(30), 5, "generous"), (PLAIN,), everything),
    Case("sort-count", Sort(BoundedCount(10)), (STAMPED,), stamped),
    Case("sort-upstream", Sort(Upstream(), late="consistent"), (PLAIN,), everything),
    Case("sort-timer", Sort(Timer(BoundedDisorder(30), 2), 5), (PLAIN,), everything),
    Case("sort-heartbeat", Sort(Heartbeat(Upstream(), 2, 60), 5), (PLAIN,), everything),
    Case(
        "sort-groups",
        Sort(PerGroup(BoundedDisorder(30), ("k",), linear=BoundedCount(10)), 1),
        (PLAIN,),
        everything,
    ),
]

CASES = [
    *GENERATORS,
    Case("guard-arrival", Guard(limit=1000), (PLAIN,), near, FAR),
    Case(
        "guard-stream", Guard(50, of="stream", patience=None, late=Late.DIVERT), (PLAIN,),
        accepted(50, None), FAR, {"order": BY_ORDER},
    ),
    Case(
        "guard-patience", Guard(50, of="stream", patience=2, late=Late.DIVERT), (PLAIN,),
        accepted(50, 2), FAR, {"order": BY_ORDER},
    ),
    Case("meld-1", Meld(1), (STAMPED,), stamped),
    Case("meld-3", Meld(3), (PLAIN,) * 3, everything),
    Case("prune-everything", PrunePunctuation(), (PLAIN,), everything),
    Case("prune-rounded", PrunePunctuation(granularity=10, attributes=("k",)), (PLAIN,), everything),
    Case("prune-linear", PrunePunctuation(granularity="5 ms", keep=("linear",)), (STAMPED,), stamped),
    Case(
        "prune-rolled_up",
        PrunePunctuation(10, groups=pa.record_batch({"k": ["a", "b"], "n": pa.array([0, 0], pa.int32())})),
        (PLAIN,), everything, {"k": ["a", "b"], "n": [0]},
    ),
    Case(
        "prune-fewer_attributes",
        PrunePunctuation(
            attributes=["k"], groups=pa.record_batch({"k": ["a", "a"], "n": pa.array([0, 1], pa.int32())})
        ),
        (PLAIN,), everything, {"k": ["a"], "n": [0, 1]},
    ),
    Case("prune-groups", PrunePunctuation(keep=["groups"]), (PLAIN,), everything),
    Case("merge-1", Merge(1), (PLAIN,), everything),
    Case("merge-3", Merge(3), (STAMPED,) * 3, stamped),
]  # fmt: skip
