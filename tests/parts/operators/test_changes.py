"""Windows that come and go while the query runs: each as if it were alone, over its life."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Linear, Page
from oop_engine.core.change import Change
from oop_engine.errors import SnapshotError
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.slicing.written import definition_of, written
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import (
    Global,
    Landmark,
    Session,
    SlideByTuple,
    Sliding,
    Tumbling,
    TupleBased,
    UserWindows,
    Windows,
)
from oop_engine.testing import Driver, multiset
from tests.naive import folded, sessions
from tests.naive import windows as naive
from tests.naive.lives import Life, over_lives
from tests.naive.windows import Row
from tests.parts.operators.window_streams import SCHEMA, Checked, events, page, rows

BY = ("k",)
ASKED = {"n": Count(), "s": Sum("v")}
ORACLE = {"n": naive.aggregate("count"), "s": naive.aggregate("sum", "v")}
KINDS: dict[str, tuple[Windows, Callable[[list[Row]], list[Row]]]] = {
    "ten": (Tumbling(10), lambda of: naive.sliding(of, "ts", BY, ORACLE, 10, 10)),
    "sliding": (Sliding(25, 5, 3), lambda of: naive.sliding(of, "ts", BY, ORACLE, 25, 5, 3)),
    "gaps": (Sliding(7, 12, 2), lambda of: naive.sliding(of, "ts", BY, ORACLE, 7, 12, 2)),
    "apart": (Tumbling(10007), lambda of: naive.sliding(of, "ts", BY, ORACLE, 10007, 10007)),
    "four": (Session(4), lambda of: sessions.sessions(of, "ts", BY, ORACLE, 4)),
    "nine": (Session(9), lambda of: sessions.sessions(of, "ts", BY, ORACLE, 9)),
    "cut": (Session(6, most=15), lambda of: sessions.sessions(of, "ts", BY, ORACLE, 6, 15)),
    "since": (Landmark(20, 200), lambda of: naive.landmark(of, "ts", BY, ORACLE, 20, 200)),
    "each": (SlideByTuple(5), lambda of: folded.slide_by_tuple(of, BY, ORACLE, 5)),
    "whole": (Global(), lambda of: sessions.whole(of, "ts", BY, ORACLE)),
}
NAMES = st.lists(st.sampled_from(list(KINDS)), unique=True, min_size=1, max_size=4)


def operator(names, **more) -> WindowAggregate:
    return WindowAggregate({name: KINDS[name][0] for name in names}, ASKED, BY, changing=True, **more)


class Drawn:
    """Changes in between the messages of a stream, each of a time that is still to come."""

    def __init__(self, data, names: list[str], said: list) -> None:
        self.lives = {name: Life(name, KINDS[name][1]) for name in names}
        self.over: list[Life] = []
        self.said: list = []
        self._data, self._reached, version = data, -(10**6), 0
        for message in said:
            self.said.append(message)
            self._note(message)
            if data.draw(st.integers(0, 3)) == 0:
                version += 1
                self.said.append(self._change(version))

    def _note(self, message) -> None:
        times = {
            Page: lambda: message.times.tolist(),
            Linear: lambda: [message.below - 1],
            GroupWise: lambda: [below - 1 for below in message.below.tolist() if below < FOREVER],
        }.get(type(message), list)()
        self._reached = max([self._reached, *times])

    def _change(self, version: int) -> Change:
        at = max(self._reached, -25) + 1 + self._data.draw(st.sampled_from([0, 1, 5, 12, 30]))
        drop = [name for name in self.lives if self._data.draw(st.booleans())]
        fresh = [name for name in KINDS if name not in self.lives or name in drop]
        add = self._data.draw(st.lists(st.sampled_from(fresh), unique=True, max_size=3)) if fresh else []
        if not add and len(drop) in (0, len(self.lives)):  # there must be something to do, and something left
            add = [f"ten-{version}"]
        self.over += [self.lives.pop(name)._replace(until=at) for name in drop]
        kinds = {name: KINDS[name.split("-")[0]] for name in add}
        self.lives |= {name: Life(name, results, since=at) for name, (_, results) in kinds.items()}
        return Change(version, at, {name: one for name, (one, _) in kinds.items()}, tuple(drop))


@settings(max_examples=30, deadline=None)
@given(
    data=st.data(), of=rows(st.integers(-20, 100), 30), names=NAMES, stamp=st.sampled_from(["end", "start"])
)
def test_each_definition_is_as_if_it_were_alone_over_its_life(data, of, names, stamp):
    names = [name for name in names if name != "since" or stamp == "end"] or ["ten"]
    apart = data.draw(st.sampled_from([0, 10, 40, 200]))
    late = enumerate(of)
    ordered = [row for _, row in sorted(late, key=lambda item: item[1]["ts"] + item[0] * 7 % (apart + 1))]
    drawn = Drawn(data, names, data.draw(events(ordered)))
    if stamp == "start" and any("since" in m.add for m in drawn.said if isinstance(m, Change)):
        return
    driver = Checked(operator(names, stamp=stamp), SCHEMA).play(drawn.said)
    lives = [*drawn.lives.values(), *drawn.over]
    assert multiset(driver.rows()) == multiset(over_lives(of, "ts", lives))
    assert driver.operator.state().in_use == (0, 0, 0)


def at(*times: int) -> Page:
    return page([{"ts": time, "k": "a", "j": 0, "v": 1, "x": 0.5} for time in times])


def windows(driver: Driver) -> list[tuple[str, int, int, int]]:
    return [(r["window"], r["window_start"], r["window_end"], r["n"]) for r in driver.rows()]


def test_a_session_that_ends_where_it_is_dropped_leaves_whatever_comes_there():
    driver = Driver(operator(["four", "nine"]), SCHEMA)
    driver.feed(0, at(10, 12))
    driver.feed(0, Change(1, 16, drop=("four",)))
    driver.feed(0, at(16))  # it would have joined
    driver.feed(0, Linear(16))
    assert windows(driver) == [("four", 10, 16, 2)]
    driver.feed(0, "end")
    assert windows(driver)[1:] == [("nine", 10, 25, 3)]


def test_a_bound_that_has_reached_the_end_lets_the_state_go():
    driver = Driver(operator(["ten", "whole"]), SCHEMA)
    driver.feed(0, at(1, 12))
    driver.feed(0, Change(1, 20, drop=("ten",)))
    assert driver.operator.state().partials == 3
    driver.feed(0, Linear(19))
    assert driver.operator.describe().startswith("WindowAggregate('whole': Global();")
    driver.feed(0, Linear(20))
    assert windows(driver) == [("ten", 0, 10, 1), ("ten", 10, 20, 1)]
    assert driver.operator.state().partials == 1


def test_a_name_may_come_back_with_other_windows():
    driver = Driver(operator(["ten"]), SCHEMA)
    driver.feed(0, Change(1, 20, {"ten": Tumbling(5)}, ("ten",)))
    driver.move()
    driver.feed(0, at(12, 21, 26))
    driver.feed(0, "end")
    assert windows(driver) == [("ten", 10, 20, 1), ("ten", 20, 25, 1), ("ten", 25, 30, 1)]


def test_results_are_promised_no_further_than_the_input_is():
    hours = Driver(WindowAggregate({"1 h": Tumbling(3600)}, ASKED, BY, changing=True), SCHEMA)
    assert hours.feed(0, Linear(22)) == [(0, Linear(22))]
    bounds = GroupWise.of({"k": ["a"]}, [25])
    assert hours.feed(0, bounds) == [(0, bounds)]
    hours.feed(0, Change(1, 30, {"ten": Tumbling(10)}))
    hours.feed(0, at(31, 39))
    (_, results), promise = hours.feed(0, Linear(41))
    assert (results.column("window_end").to_pylist(), promise) == ([40], (0, Linear(41)))


def test_the_first_copy_of_a_version_counts():
    driver = Driver(operator(["ten"]), SCHEMA)
    driver.feed(0, Change(1, 20, {"again": Tumbling(10)}))
    driver.feed(0, at(25))
    driver.move()
    driver.feed(0, Change(1, 20, {"again": Tumbling(10)}))
    driver.feed(0, "end")
    assert windows(driver) == [("ten", 20, 30, 1), ("again", 20, 30, 1)]


@pytest.mark.parametrize("said", [at(30), Linear(31), GroupWise.of({"k": ["a"]}, [31])], ids=repr)
def test_a_change_that_comes_behind_its_time_is_refused(said):
    driver = Driver(operator(["ten"]), SCHEMA)
    driver.feed(0, said)
    with pytest.raises(ContractError, match="got at=30, and 30 has been let through: choose a later at"):
        driver.feed(0, Change(1, 30, {"two": Tumbling(2)}))
    assert driver.feed(0, GroupWise.of({"k": ["b"]}, [FOREVER]))
    driver.feed(0, Change(2, 31, {"two": Tumbling(2)}))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"drop": ("none",)}, "drops none: name one there is"),
        ({"add": {"ten": Tumbling(5)}}, "ten are there already"),
        ({"drop": ("ten",)}, "drops the last windows, ten"),
        ({"add": {"x": Landmark(10)}}, "give it a later origin"),
        ({"add": {"x": Tumbling(0)}}, "'x': range must be > 0"),
        ({"add": {"x": Tumbling}}, "windows must be a value"),
        ({"add": {"x": TupleBased(2, 2)}}, "use two operators"),
        ({"add": {"x": TupleBased(2, 2, order="time")}}, "use two operators"),
    ],
)
def test_a_change_must_fit_the_operator(change, error):
    driver = Driver(operator(["ten"]), SCHEMA)
    with pytest.raises(GraphError, match=error):
        driver.feed(0, Change(1, 30, **change))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({}, "to add or to drop"),
        ({"drop": "ten"}, "drop must be a tuple"),
        ({"add": ["ten"]}, "add must be named definitions"),
        ({"add": {1: Tumbling(5)}}, "all of them texts"),
        ({"add": {"a": Tumbling(5)}, "at": 2.5}, "at must be an integer of 64 bits"),
        ({"add": {"a": Tumbling(5)}, "at": FOREVER}, "at must be an integer of 64 bits"),
    ],
)
def test_a_change_is_checked_when_it_is_made(wrong, error):
    with pytest.raises(ContractError, match=error):
        Change(**{"version": 1, "at": 0, **wrong})


def test_an_operator_must_be_made_for_it():
    with pytest.raises(GraphError, match="changing=True needs named windows"):
        WindowAggregate(Tumbling(10), ASKED, changing=True)
    with pytest.raises(GraphError, match="leave changing out"):
        WindowAggregate({"rows": TupleBased(2, 2)}, ASKED, changing=True).opened(SCHEMA)
    fixed = Driver(WindowAggregate({"ten": Tumbling(10)}, ASKED), SCHEMA)
    with pytest.raises(GraphError, match="made with changing=True"):
        fixed.feed(0, Change(1, 30, {"two": Tumbling(2)}))


def test_windows_that_cannot_be_written_down_are_refused_by_a_snapshot():
    driver = Driver(operator(["ten"]), SCHEMA)
    driver.feed(0, Change(1, 30, {"own": UserWindows(cut=max)}))
    with pytest.raises(SnapshotError, match="cannot be written down"):
        driver.move()


@pytest.mark.parametrize(
    "wrong", [None, ["eval", {}], ["Gap", {"gap": 3}], ["Tumbling", ["x"]], ["Driver", {}]]
)
def test_only_windows_of_the_library_are_read(wrong):
    with pytest.raises(SnapshotError, match="name of a definition"):
        definition_of(wrong)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "x"])
def test_windows_come_back_as_they_were_written(name):
    definition = KINDS[name][0]
    assert definition_of(written(definition)) == definition
