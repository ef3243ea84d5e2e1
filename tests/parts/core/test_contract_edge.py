from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.core.graphs.contract import EdgeContract
from oop_engine.extend import Message
from tests.naive.kernel import GROUPS, Promise

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "ts_right": pa.int64()}, "ts", "s")


def page(*rows: tuple[int, str | None, int | None]) -> Page:
    ts, k, right = zip(*rows, strict=True) if rows else ((), (), ())
    return Page.of(SCHEMA, {"ts": list(ts), "k": list(k), "ts_right": list(right)})


def groups(**bounds: int) -> GroupWise:
    return GroupWise.of({"k": list(bounds)}, list(bounds.values()))


@pytest.mark.parametrize(
    "messages",
    [
        [Linear(5), page((5, "a", 0), (9, "b", 0)), Linear(5), Linear(9), page((9, "a", 0))],
        [Linear(5), page()],
        [
            groups(a=5, b=9),
            page((5, "a", 0), (9, "b", 0), (0, "c", 0), (0, None, 0)),
            groups(a=5),
            groups(a=7),
        ],
        [Linear(9), groups(a=5), page((9, "a", 0))],  # implied by the stream's promise: idle, but true
        [groups(a=9), GroupWise.of({"k": ["a"], "ts_right": [1]}, [5]), page((9, "a", 1))],
        [groups(a=FOREVER), page((1, "b", 0))],
        [Joint.of(ts=5, ts_right=5), page((4, "a", 5), (5, "a", 4), (4, "a", None))],
        [groups(), Joint.of(ts=1)],
    ],
    ids=range(8),
)
def test_who_keeps_his_word_passes(messages: list[Message]) -> None:
    edge = EdgeContract("meld -> bucket")
    for message in messages:
        edge.check(message)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (
            [Linear(5), page((7, "a", 0)), page((5, "a", 0), (4, "b", 0))],
            "tuple {'ts': 4, 'k': 'b', 'ts_right': 0} came after a punctuation that excluded ts < 5 (page 2, row 1)",
        ),
        ([groups(a=5, b=9), page((6, "a", 0), (8, "b", 0))], "excluded ts < 9 (page 1, row 1)"),
        ([groups(a=FOREVER), page((10**9, "a", 0))], f"ts < {FOREVER}"),
        ([groups(a=FOREVER), Linear(3), page((10**9, "a", 0))], f"ts < {FOREVER}"),
        ([groups(a=5), Linear(7), page((6, "b", 0))], "ts < 7"),
        ([Linear(5), GroupWise.of({"k": ["a"], "ts_right": [1]}, [9]), page((8, "a", 1))], "ts < 9"),
        ([Joint.of(ts=5, ts_right=7), page((4, "a", 6))], "excluded ts < 5 and ts_right < 7"),
        (
            [Joint.of(ts=5, ts_right=7), Joint.of(ts=4, ts_right=9), page((4, "a", 6))],
            "ts < 5 and ts_right < 7",
        ),
        ([Joint.of(ts_right=7), Joint.of(ts_right=8), page((9, "a", 7))], "ts_right < 8"),
        ([Linear(5), Linear(4)], "bound 4 is below the bound 5 before it"),
        ([groups(a=5), groups(a=4)], "bound 4 for {'k': 'a'} is below the bound 5 before it"),
        ([groups(a=5), groups(a=4, b=9)], "bound 4 for {'k': 'a'} is below the bound 5 before it"),
    ],
    ids=range(12),
)
def test_who_breaks_it_is_told_where(messages: list[Message], words: str) -> None:
    edge = EdgeContract("meld -> bucket")
    for message in messages[:-1]:
        edge.check(message)
    with pytest.raises(ContractError, match=f"^edge 'meld -> bucket': .*{re.escape(words)}"):
        edge.check(messages[-1])


def test_of_a_group_that_has_ended_less_may_be_said_but_nothing_may_come() -> None:
    edge = EdgeContract("edge")
    for message in (groups(a=FOREVER), groups(a=4)):
        edge.check(message)
    with pytest.raises(ContractError, match="came after a punctuation"):
        edge.check(page((10**9, "a", 0)))


def test_attributes_in_another_order_are_the_same_group() -> None:
    edge = EdgeContract("edge")
    edge.check(GroupWise.of({"k": ["a"], "ts_right": [1]}, [9]))
    with pytest.raises(ContractError, match="is below the bound"):
        edge.check(GroupWise.of({"ts_right": [1], "k": ["a"]}, [8]))


ROWS = st.tuples(st.integers(0, 8), st.sampled_from([g[0] for g in GROUPS]), st.just(0))
PROMISES = st.integers(0, 9).map(Linear) | st.dictionaries(
    st.sampled_from("ab"), st.integers(0, 9), max_size=2
).map(lambda bounds: groups(**bounds))


@given(st.lists(ROWS | PROMISES, max_size=12))
def test_a_tuple_is_refused_exactly_if_its_cell_was_promised(events: list) -> None:
    edge, promised = EdgeContract("edge"), Promise()
    for event in events:
        if not isinstance(event, tuple):
            try:
                edge.check(event)
            except ContractError:
                return  # takes a promise back; the cases above tell which do
            promised.add(event)
        elif ((event[1],), event[0]) in promised.cells:
            with pytest.raises(ContractError):
                edge.check(page(event))
        else:
            edge.check(page(event))
