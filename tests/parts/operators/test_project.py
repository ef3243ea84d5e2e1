"""Project: columns and names, and what becomes of promises when the attributes change."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.operators.project import Project
from oop_engine.testing import Driver

SCHEMA = Schema({"ts": pa.int64(), "ts_right": pa.int64(), "k": pa.string(), "n": pa.int64()}, "ts", "ms")
PAGE = Page.of(SCHEMA, {"ts": [1, 2], "ts_right": [9, 8], "k": ["a", "b"], "n": [1, 2]}, arrival=[7, 8])
RENAMED = {"time": "ts", "key": "k", "twice": pc.field("n") * 2}


def test_columns_leave_in_the_order_asked_for_with_their_arrival():
    driver = Driver(Project(RENAMED), SCHEMA)
    [(_, page)] = driver.feed(0, PAGE)
    assert page.to_pylist() == [{"time": 1, "key": "a", "twice": 2}, {"time": 2, "key": "b", "twice": 4}]
    assert page.arrival.tolist() == [7, 8]
    assert (page.schema.progressing, page.schema.unit) == ("time", "ms")


def test_kept_columns_are_not_copied():
    [(_, page)] = Driver(Project(["n", "ts"]), SCHEMA).feed(0, PAGE)
    assert page.column("n").buffers()[1].address == PAGE.column("n").buffers()[1].address


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        (Linear(3), [Linear(3)]),
        (GroupWise.of({"k": ["a"]}, [9]), [GroupWise.of({"key": ["a"]}, [9])]),
        (GroupWise.of({"k": ["a"], "n": [1]}, [9]), []),
        (Joint.of(ts=3), [Joint.of(time=3)]),
        (Joint.of(ts=3, ts_right=4), []),
    ],
)
def test_promises_get_the_new_names_or_are_dropped(promise, said):
    assert [m for _, m in Driver(Project(RENAMED), SCHEMA).feed(0, promise)] == said


def moved(columns):
    return Driver(Project(columns, progressing="right"), SCHEMA)


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        (Joint.of(ts_right=5), [Linear(5)]),
        (Linear(3), [Joint.of(left=3)]),
        (Linear(FOREVER), [Linear(FOREVER)]),
        (Joint.of(ts=3, ts_right=5), [Joint.of(left=3, right=5)]),
        (GroupWise.of({"k": ["a", "b"]}, [9, FOREVER]), [GroupWise.of({"key": ["b"]}, [FOREVER])]),
        (GroupWise.of({"k": ["a"]}, [9]), []),
    ],
)
def test_promises_of_a_stream_that_makes_progress_by_another_attribute(promise, said):
    driver = moved({"right": "ts_right", "left": "ts", "key": "k"})
    assert driver.operator.schemas_out[0].progressing == "right"
    assert [m for _, m in driver.feed(0, promise)] == said


def test_promises_of_the_old_attribute_are_dropped_with_it():
    assert moved({"right": "ts_right"}).feed(0, Linear(3)) == []


def test_nothing_is_promised_twice_even_after_moving():
    driver = moved({"right": "ts_right"})
    driver.feed(0, Joint.of(ts_right=5))
    driver.move()
    assert driver.feed(0, Joint.of(ts_right=5)) == []
    assert driver.feed(0, Linear(FOREVER)) == [(0, Linear(FOREVER))]
    assert driver.feed(0, Joint.of(ts_right=7)) == []


def test_a_timestamp_brings_its_own_unit():
    schema = Schema({"n": pa.int64(), "at": pa.timestamp("us")}, "n", "rows")
    assert Project(["at"], progressing="at").output_schemas((schema,))[0].unit == "us"
    back = Schema({"n": pa.int64(), "at": pa.timestamp("us")}, "at")
    assert Project(["n"], progressing="n").output_schemas((back,))[0].unit == "us"


def test_a_null_in_the_new_progressing_attribute_is_refused():
    page = Page.of(SCHEMA, {"ts": [1], "ts_right": [None], "k": ["a"], "n": [1]})
    with pytest.raises(ContractError, match="'right' must not be null"):
        moved({"right": "ts_right"}).feed(0, page)


@pytest.mark.parametrize(
    ("columns", "progressing", "words"),
    [
        (["k"], None, "'ts' must be kept"),
        ({"ts": pc.field("ts") + 1}, None, "'ts' must be kept"),
        (["ts", "len"], None, "no column 'len'"),
        (["ts", "k"], "k", "integer or a timestamp"),
        (["ts"], "n", "progressing='n'"),
        ({"ts": "ts", "t": pc.field("ts") + 1}, "t", "progressing='t'"),
        (["ts", "ts_right"], "left", "progressing='left'"),
    ],
)
def test_refused_when_built(columns, progressing, words):
    with pytest.raises(GraphError, match=words):
        Project(columns, progressing).output_schemas((SCHEMA,))


@pytest.mark.parametrize("columns", [[], {}, 5, ["ts", "ts"]])
def test_columns_that_cannot_be(columns):
    with pytest.raises(GraphError, match="Project: columns must"):
        Project(columns)
