"""Punctuation is taken in the types of its stream, wherever it comes from."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from oop_engine import ContractError, Graph, GroupWise, Joint, Linear, Operator, Page, Schema, replay
from oop_engine.core.fitted import fitted, is_below, once_each
from oop_engine.extend import Message

TOKYO, UTC = pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("s", "UTC")
SECOND, MILLISECOND = dt.datetime(1970, 1, 1, 0, 0, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1000)
MANY = Schema({"ts": pa.int64(), "k": pa.timestamp("ms"), "x": pa.float32(), "d": pa.date32()}, "ts", "s")


def told(values: list[Any] | pa.Array, kind: pa.DataType) -> list[Any] | None:
    """Return what is left of some keys in a stream that has them as ``kind``."""
    schema = Schema({"ts": pa.int64(), "k": kind}, "ts", "s")
    keys = pa.array(values)
    promise = fitted(GroupWise(pa.record_batch({"k": keys}), np.arange(len(keys))), schema, "source 's'")
    assert promise.groups.schema.types == schema.fields.types[1:]
    return promise.groups.column("k").to_pylist()


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([SECOND, None], pa.timestamp("ms"), [SECOND, None]),
        ([SECOND, SECOND.replace(microsecond=1)], pa.timestamp("ms"), [SECOND]),
        ([dt.datetime(9999, 1, 1)], pa.timestamp("ns"), []),
        ([dt.date(2020, 1, 2)], pa.timestamp("s"), [dt.datetime(2020, 1, 2)]),
        ([SECOND, dt.datetime(1970, 1, 2)], pa.date32(), [dt.date(1970, 1, 2)]),
        (pa.array([SECOND], TOKYO), UTC, [SECOND.replace(tzinfo=dt.UTC)]),
        ([dt.time(1), dt.time(1, 0, 0, 5)], pa.time32("s"), [dt.time(1)]),
        ([dt.timedelta(1), dt.timedelta(0, 0, 1)], pa.duration("s"), [dt.timedelta(1)]),
        ([1.5, 1e39, -0.0, None, 2.0**70, float("inf")], pa.float32(), [1.5, 0.0, None, 2.0**70, float("inf")]),
        ([1.0, 1.5, float("nan"), 2.0**70], pa.int8(), [1]),
        ([1, -1, 300], pa.uint8(), [1]),
        ([-1, 2**62], pa.uint64(), [2**62]),
        (pa.array([2**63, 7], pa.uint64()), pa.int64(), [7]),
        ([2**62, 2**62 + 1], pa.float64(), [2.0**62]),
        ([1, 2**62], pa.decimal128(10, 2), [Decimal(1)]),
        ([Decimal("1.50"), Decimal("0.11")], pa.decimal128(4, 1), [Decimal("1.5")]),
        ([Decimal("2.00"), Decimal("1.50")], pa.int64(), [2]),
        (["a", None], pa.large_string(), ["a", None]),
        (["a", None], pa.dictionary(pa.int8(), pa.string()), ["a", None]),
        ([7, None, 300], pa.dictionary(pa.int8(), pa.uint8()), [7, None]),
        ([SECOND], pa.dictionary(pa.int32(), pa.timestamp("ms")), [SECOND]),
        (pa.array(["a", "b"]).dictionary_encode(), pa.string(), ["a", "b"]),
        ([b"ab", b"abc"], pa.binary(2), [b"ab"]),
        ([None, None], pa.string(), [None, None]),
        ([], pa.string(), []),
        ([[1, 300], [1]], pa.list_(pa.int8()), [[1]]),
        ([{"a": 1.5}, {"a": 1.0}], pa.struct([("a", pa.int32())]), [{"a": 1}]),
    ],
    ids=str,
)  # fmt: skip
def test_a_key_is_the_same_value_in_the_stream_s_type_or_left_out(
    values: Any, kind: pa.DataType, expected: list[Any]
) -> None:
    assert told(values, kind) == expected


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1], pa.string()), ([1000], pa.timestamp("ms")), ([True], pa.int64()),
        ([SECOND], pa.timestamp("ms", "UTC")), ([[1]], pa.list_(pa.string())),
    ],
    ids=str,
)  # fmt: skip
def test_types_without_a_value_in_common_are_refused(values: list[Any], kind: pa.DataType) -> None:
    with pytest.raises(ContractError, match=r"source 's': .* by 'k' must be .*; got .*: declare it as"):
        told(values, kind)


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        (GroupWise.of({"kk": [SECOND]}, [1]), "must be about columns of .*; got one about kk"),
        (Joint.of(ts=1, kk=2), "must be about columns of .*; got one about kk"),
        (Joint.of(x=2), "integers and timestamps; 'x' is float"),
        (Joint.of(d=2), "integers and timestamps; 'd' is date32"),
    ],
    ids=str,
)
def test_a_promise_about_what_has_no_bounds_is_refused(promise: Message, words: str) -> None:
    with pytest.raises(ContractError, match=f"edge: .*{words}"):
        fitted(promise, MANY, "edge")


def test_what_fits_stays_as_it_is() -> None:
    of_groups = GroupWise(pa.record_batch({"k": pa.array([SECOND], pa.timestamp("ms"))}), np.array([1]))
    page = Page.empty(MANY)
    for message in (of_groups, Linear(3), Joint.of(ts=1, k=2), page):
        assert fitted(message, MANY, "edge") is message


@pytest.mark.parametrize(
    ("groups", "below", "once"),
    [
        ({"k": ["b", "a", "b"]}, [10, 5, 20], {("b",): 20, ("a",): 5}),
        ({"k": ["a", "b", "a"], "j": [1, 1, 1]}, [5, 6, 7], {("a", 1): 7, ("b", 1): 6}),
        ({"k": ["a", "b", "a"], "j": [1, 1, 2]}, [5, 6, 7], {("a", 1): 5, ("b", 1): 6, ("a", 2): 7}),
        ({"k": [0.0, -0.0, None, None]}, [1, 2, 4, 3], {(0.0,): 2, (None,): 4}),
        ({"k": [[1], [1]]}, [1, 2], {((1,),): 2}),
    ],
)
def test_of_a_group_told_twice_the_larger_bound_holds(groups: dict, below: list[int], once: dict) -> None:
    promise = once_each(GroupWise.of(groups, below))
    keys = [
        tuple(tuple(v) if isinstance(v, list) else v for v in row.values())
        for row in promise.groups.to_pylist()
    ]
    assert dict(zip(keys, promise.below.tolist(), strict=True)) == once
    assert len(promise) == len(once)


@pytest.mark.parametrize(
    ("groups", "below"),
    [
        (pa.record_batch({"k": ["a"]}), np.array([1.5])),
        (pa.record_batch({"k": ["a"]}), np.array([[1]])),
        (pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["k", "k"]), np.array([1])),
        (pa.RecordBatch.from_arrays([], names=[]), np.array([], np.int64)),
    ],
    ids=["float", "matrix", "twice", "none"],
)
def test_a_promise_of_another_shape_is_none(groups: pa.RecordBatch, below: np.ndarray) -> None:
    with pytest.raises(ContractError, match="group-wise punctuation"):
        GroupWise(groups, below)


def test_what_is_below_a_bound() -> None:
    large = pa.array([0, 2**63 + 5, None], pa.uint64())
    assert is_below(large, 5).tolist() == [True, False, False]
    assert is_below(large, -5).tolist() == [False, False, False]
    assert is_below(large, 2**63 - 1).tolist() == [True, True, False]
    assert is_below(pa.array([-1, 4, None]), 4).tolist() == [True, False, False]


class _Heard(Operator):
    """Passes all on, and says a promise of its own in the types Arrow makes of it."""

    def on_page(self, port: int, page: Page) -> Any:
        yield 0, page
        yield 0, GroupWise.of({"k": [MILLISECOND]}, [7])


@pytest.mark.parametrize("on", ["inline", "local"])
def test_every_edge_of_a_graph_has_promises_in_its_types(on: Any) -> None:
    graph = Graph("g")
    source = graph.source("in", MANY)
    graph.sink("out", graph.add("heard", _Heard(), source))
    page = Page.of(MANY, {"ts": [9], "k": [MILLISECOND], "x": [1.0], "d": [None]})
    said: list[Message] = []
    feed: list[Message] = [GroupWise.of({"k": [SECOND, SECOND]}, [3, 5]), page]
    replay(graph, {"in": feed}, on=on, check=True, on_result=lambda result: said.append(result.message))
    kind = pa.timestamp("ms")
    for key, below in ((SECOND, 5), (MILLISECOND, 7)):
        assert GroupWise(pa.record_batch({"k": pa.array([key], kind)}), np.array([below])) in said
    with pytest.raises(ContractError, match="source 'in'"):
        replay(graph, {"in": [GroupWise.of({"k": [1]}, [3])]}, on=on)
    with pytest.raises(ContractError, match=r"source 'in': .* 'x' is float"):
        replay(graph, {"in": [Joint.of(x=3)]}, on=on, check=True)
