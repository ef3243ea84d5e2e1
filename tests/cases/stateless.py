"""Operators that look at one tuple at a time, and Distinct."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine import Schema
from oop_engine.operators.distinct import Distinct
from oop_engine.operators.edge.arrival_time import ArrivalTime
from oop_engine.operators.edge.shed import Shed
from oop_engine.operators.expire import Expire
from oop_engine.operators.filter import Filter
from oop_engine.operators.keys.key_codes import key_hashes
from oop_engine.operators.latest import Latest
from oop_engine.operators.project import Project
from oop_engine.operators.split import Split
from oop_engine.operators.with_columns import WithColumns
from tests.cases import Case, Row
from tests.naive.stateless import (
    apply,
    arrived,
    distinct,
    expiring,
    latest,
    project,
    select,
    split,
    within_budget,
)

PLAIN = Schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int32()}, "ts", "s")
METRES = Schema({"at": pa.int32(), "k": pa.string(), "x": pa.float64()}, "at", "m")
# A few values, so that there are duplicates.
FEW: dict[str, list[Any]] = {"ts": [3, 4, 20], "k": ["a", None], "n": [1, None]}


def is_positive(batch: pa.RecordBatch) -> pa.Array:
    return pc.greater(batch["n"], 0)


def positive(row: Row) -> bool | None:
    return None if row["n"] is None else row["n"] > 0


def is_a(row: Row) -> bool | None:
    return None if row["k"] is None else row["k"] == "a"


def double(row: Row) -> int | None:
    return None if row["n"] is None else row["n"] * 2


def is_one_of_three(row: Row) -> bool:
    """Tell whether a key is in a third of all, by the upper half of its hash."""
    return key_hash(row) % 3 == 0


def key_hash(row: Row) -> int:
    return int(key_hashes([pa.array([row["k"]], pa.string())], 1)[0]) % 2**64 >> 32


ARRIVAL = "arrivals follow from the order in which tuples come"
BY_ARRIVAL = {"order": ARRIVAL, "division": ARRIVAL}
PREDICATES = {"a": pc.field("k") == "a", "positive": is_positive}
RENAMED = {"time": "ts", "key": "k", "twice": pc.field("n") * 2}

CASES = [
    Case("select-expression", Filter(pc.field("k") == "a"), (PLAIN,), lambda i: select(i[0], is_a)),
    Case("select-function", Filter(is_positive), (PLAIN,), lambda i: select(i[0], positive)),
    Case(
        "project-names",
        Project(["k", "at"]),
        (METRES,),
        lambda i: project(i[0], {"k": lambda r: r["k"], "at": lambda r: r["at"]}),
    ),
    Case(
        "project-renamed",
        Project(RENAMED),
        (PLAIN,),
        lambda i: project(i[0], {"time": lambda r: r["ts"], "key": lambda r: r["k"], "twice": double}),
    ),
    Case(
        "project-progressing",
        Project(["ts", "n", "k"], progressing="n"),
        (PLAIN,),
        lambda i: i[0],
        {"n": [0, 5, 9]},
    ),
    Case(
        "apply-added_and_replaced",
        WithColumns({"positive": is_positive, "n": pc.field("n") * 2}),
        (PLAIN,),
        lambda i: apply(i[0], {"positive": positive, "n": double}),
    ),
    Case(
        "stamp",
        ArrivalTime("came"),
        (PLAIN,),
        lambda i: arrived(i[0], "came"),
        {},
        BY_ARRIVAL,
    ),
    Case(
        "shed-by_key",
        Shed(3, ("k",)),
        (PLAIN,),
        lambda i: apply(select(i[0], is_one_of_three), {"weight": lambda row: 3}),
        {"k": [*"abcdefghij", None]},
    ),
    Case(
        "shed-budget",
        Shed(by=("k",), budget=0.3),
        (PLAIN,),
        lambda i: within_budget(i[0], 0.3, key_hash),
        {"k": [*"abcdefghij", None]},
        BY_ARRIVAL,
    ),
    Case(
        "latest",
        Latest(("k",), is_positive),
        (PLAIN,),
        lambda i: latest(i[0], "ts", ["k"], positive),
    ),
    Case(
        "latest-few",
        Latest(("n", "k"), pc.field("k") == "a"),
        (PLAIN,),
        lambda i: latest(i[0], "ts", ["n", "k"], is_a),
        FEW,
    ),
    Case("expire", Expire(7), (PLAIN,), lambda i: expiring(i[0], "ts", 7)),
    Case("split-rest", Split(PREDICATES, rest="other"), (PLAIN,), lambda i: split(i[0], [is_a, positive])[0]),
    Case("split-unmatched", Split(PREDICATES), (PLAIN,), lambda i: split(i[0], [is_a, positive])[0]),
    Case("distinct-all", Distinct(), (PLAIN,), lambda i: distinct(i[0], PLAIN.names), FEW),
    Case("distinct-by_key", Distinct(("k",)), (PLAIN,), lambda i: distinct(i[0], ["ts", "k"]), FEW),
    Case("distinct-by_time", Distinct(()), (PLAIN,), lambda i: distinct(i[0], ["ts"]), FEW),
]
