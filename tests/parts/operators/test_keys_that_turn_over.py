"""Keys that come once and never again: the state is that of the keys with open windows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from oop_engine import GroupWise, Linear, Page, Schema
from oop_engine.core.punctuation import FOREVER
from oop_engine.operators import Count, Tumbling, WindowAggregate
from oop_engine.testing import Driver

TURNS, KEYS = 30, 500


@pytest.mark.parametrize("group_wise", [False, True], ids=["of the stream", "of groups"])
@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.int64()], ids=str)
def test_keys_that_turn_over_leave_nothing(kind: pa.DataType, group_wise: bool) -> None:
    schema = Schema({"ts": pa.int64(), "key": kind}, "ts", "s")
    driver = Driver(WindowAggregate(Tumbling(10), {"count": Count()}, by=("key",)), schema)
    held = []
    for turn in range(TURNS):
        page = Page.of(schema, {"ts": pa.array([10 * turn] * KEYS), "key": keys(turn, kind)})
        driver.feed(0, page)
        held.append(driver.operator.state().nbytes)
        driver.feed(0, ended(page) if group_wise else Linear(10 * turn + 10))
        assert driver.operator.state().groups == 0
    assert sum(len(page) for page in driver.out[0] if isinstance(page, Page)) == TURNS * KEYS
    assert max(held) <= 1.1 * max(held[:4])


def keys(turn: int, kind: pa.DataType) -> pa.Array:
    numbers = range(turn * KEYS, (turn + 1) * KEYS)
    if pa.types.is_integer(kind):
        return pa.array(numbers, kind)
    texts = pa.array([f"{n}, and {'a longer text' if n % 2 else ''}" for n in numbers])
    return texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts


def ended(page: Page) -> GroupWise:
    groups = pa.RecordBatch.from_arrays([page.column("key")], ["key"])
    return GroupWise(groups, pa.array([FOREVER] * KEYS).to_numpy())
