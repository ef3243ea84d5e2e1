"""Bounds of one key at a time, and none of the stream: windows close, and what they held goes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import GroupWise, Operator, Page, Schema
from oop_engine.aggregates import CountDistinct, Median
from oop_engine.operators import (
    Band,
    Count,
    Distinct,
    Max,
    OAJoin,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowAggregate,
)
from oop_engine.windows import Landmark, PartitionedTupleBased

KEYS = 24  # more than are looked at together
SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
RIGHT = Schema({"at": pa.int64(), "k": pa.int64(), "w": pa.int64()}, "at", "s")
ONE = {"n": Count(), "s": Sum("v")}
OPERATORS: dict[str, Operator] = {
    "tumbling": WindowAggregate(Tumbling(10), ONE, ("k",)),
    "sliding": WindowAggregate(Sliding(30, 10), ONE, ("k",)),
    "max": WindowAggregate(Sliding(30, 10), {"m": Max("v")}, ("k",)),
    "two": WindowAggregate({"a": Sliding(30, 10), "b": Tumbling(7)}, ONE, ("k",)),
    "adaptive": WindowAggregate(Sliding(30, 10), ONE, ("k",), strategy="adaptive"),
    "session": WindowAggregate(Session(5), ONE, ("k",)),
    "landmark": WindowAggregate(Landmark(10), ONE, ("k",)),
    "median": WindowAggregate(Tumbling(10), {"m": Median("v")}, ("k",)),
    "distinct values": WindowAggregate(Tumbling(10), {"d": CountDistinct("v")}, ("k",)),
    "ranks": WindowAggregate(PartitionedTupleBased(4, 2, order="time"), ONE, ("k",)),
    "distinct": Distinct(("k",)),
    "join": OAJoin([("k", "k")], Band(5, 5)),
}


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("name", OPERATORS)
def test_state_is_that_of_the_open_windows(name: str) -> None:
    operator = OPERATORS[name]
    joins = len(operator.inputs) > 1
    opened = operator.opened(*((SCHEMA, RIGHT) if joins else (SCHEMA,)))
    sizes = []
    for step in range(60):
        times = np.full(KEYS, 10 * step) + np.arange(KEYS) % 10
        for port, schema in enumerate(opened.schemas_in):
            columns = [times, np.arange(KEYS), times % 7]
            list(opened.on_page(port, Page.of(schema, dict(zip(schema.names, columns, strict=True)))))
        for key in range(KEYS):
            for port in range(len(opened.inputs)):
                list(opened.on_punctuation(port, GroupWise.of({"k": [key]}, [10 * step])))
        sizes.append((opened.state().nbytes, len(opened.snapshot())) if step % 10 == 9 else (0, 0))
    early, late = sizes[19], sizes[-1]
    assert late[0] <= 1.2 * early[0] + 4096
    assert late[1] <= 1.2 * early[1] + 512
