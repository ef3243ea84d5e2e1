"""What may come in at a source: the same under every runner, with ``check`` and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import FOREVER, NEVER, ContractError, GroupWise, Joint, Linear, Page, Schema, replay
from oop_engine.core.graphs.graph import Graph
from oop_engine.extend import Message
from oop_engine.spark.io.spool import spool

S = Schema({"ts": pa.int64(), "other": pa.int64()}, "ts", "s")
COLUMNS = {"ts": [0, 61], "other": [0, 600]}
OTHER_TYPE = Schema({"ts": pa.int64(), "other": pa.int32()}, "ts", "s")

WRONG: dict[str, tuple[Any, str]] = {
    "text": ("hello", r"row \d: a feed of \w+ takes a Page, .*, tuples of values; got 'hello' \(str\)"),
    "nothing": (None, r"row \d: a feed of \w+ takes a Page, .*, tuples of values; got None \(NoneType\)"),
    "unit": (
        Page.of(Schema(S.fields, "ts", "ms"), COLUMNS),
        "must be by 'ts' in 's'; got one by 'ts' in 'ms'",
    ),
    "attribute": (Page.of(Schema(S.fields, "other", "s"), COLUMNS), "in 's'; got one by 'other' in 's'"),
    "type": (
        Page.of(OTHER_TYPE, COLUMNS),
        "must be of the columns ts: int64, other: int64; got one of ts: int64, other: int32",
    ),
    "fewer columns": (Page.of(S.select(["ts"]), COLUMNS), "must be of the columns .*; got one of ts: int64"),
    "half a bound": (Linear(1.5), "must be an integer of 64 bits; got 1.5"),  # type: ignore[arg-type]
    "a truth": (Linear(True), "must be an integer of 64 bits; got True"),
    "no bound": (Linear(None), "must be an integer of 64 bits; got None"),  # type: ignore[arg-type]
    "a long bound": (Linear(1 << 63), "must be an integer of 64 bits; got 9223372036854775808"),
    "groups": (GroupWise.of({"ts": [1], "k": ["a"]}, [5]), "must be about columns of .*; got one about k"),
    "joint": (Joint.of(ts=5, ts_right=7), "must be about columns of .*; got one about ts_right"),
    "joint bound": (Joint((("ts", 1.5),)), "integer of 64 bits; got 1.5"),  # type: ignore[arg-type]
}


def passing() -> Graph:
    graph = Graph("g")
    graph.sink("out", graph.source("s", S))
    return graph


@pytest.mark.parametrize("on", ["inline", "local"])
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_message_of_the_source_is_refused(
    what: str, on: Literal["inline", "local"], check: bool
) -> None:
    message, words = WRONG[what]
    with pytest.raises(ContractError, match=r"^graph 'g', source 's': ") as caught:
        replay(passing(), {"s": [Page.of(S, COLUMNS), message]}, on=on, check=check)
    assert caught.match(words)


@pytest.mark.parametrize("what", WRONG)
def test_it_is_refused_on_the_way_to_spark(what: str, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"^feed 's': "):
        spool({"s": [WRONG[what][0]]}, {"s": S}, tmp_path)
    assert not (tmp_path / "moments.json").exists()


@pytest.mark.parametrize("on", ["inline", "local"])
def test_equal_schemas_and_all_kinds_of_promises_may_come_in(on: Literal["inline", "local"]) -> None:
    same = Schema(pa.schema(list(S.fields)), "ts", "s")
    feed: list[Message] = [
        Page.of(same, COLUMNS),
        Page.empty(same),
        Linear(NEVER),
        Linear(np.int64(5)),  # type: ignore[arg-type]
        Linear(FOREVER),
        GroupWise.of({"other": [1]}, [70]),
        Joint.of(other=7),
    ]
    assert replay(passing(), {"s": feed}, on=on).results["out"].num_rows == 2
