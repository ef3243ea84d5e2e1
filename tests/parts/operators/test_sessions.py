"""Sessions against the definition, over arrival orders, page cuts and punctuation, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import FOREVER, ContractError, GraphError, GroupWise, Joint, Linear, Page, Schema
from oop_engine.aggregates import Median, UserDefined
from oop_engine.core.errors import SnapshotError
from oop_engine.core.saved import Saved
from oop_engine.operators import Count, Session, Sum, Tumbling, WindowAggregate
from oop_engine.operators.slicing.stores import session_store
from oop_engine.system.kernel import numba
from oop_engine.testing import Driver, multiset
from oop_engine.thesis import Bucket, BufferingAggregate, PartialAggregate
from oop_engine.windows import LastRows
from tests.laws.test_calls import calls
from tests.naive.sessions import sessions
from tests.parts.operators.test_window_aggregate import AGGREGATES, BY, ORACLE
from tests.parts.operators.window_streams import SCHEMA, Checked, events, rows

KEYED = Schema({"ts": pa.int64(), "k": pa.string(), "v": pa.int64()}, "ts", "s")
STAMPS = st.sampled_from(["end", "start"])


def total(rows):
    return sum(row["ts"] for row in rows)


def keyed(ts, k="a", v=1) -> Page:
    return Page.of(KEYED, {"ts": [ts], "k": [k], "v": [v]})


def group(k, below) -> GroupWise:
    return GroupWise(pa.RecordBatch.from_pydict({"k": [k]}), np.array([below]))


@settings(max_examples=30, deadline=None)
@given(data=st.data(), of=rows(size=40), by=BY, gap=st.integers(1, 12), stamp=STAMPS)
def test_windows_are_those_of_the_definition(data, of, by, gap, stamp):
    operator = WindowAggregate(Session(gap), AGGREGATES, by, stamp=stamp)
    driver = Checked(operator, SCHEMA).play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(sessions(of, "ts", by, ORACLE, gap))
    assert driver.operator.state().in_use == (0, 0, 0)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), of=rows(size=40), by=BY, gap=st.integers(1, 12), most=st.integers(1, 30), stamp=STAMPS)
def test_sessions_that_are_cut_are_those_of_the_definition(data, of, by, gap, most, stamp):
    operator = WindowAggregate(Session(gap, most=most), AGGREGATES, by, stamp=stamp)
    driver = Checked(operator, SCHEMA).play(data.draw(events(of)))
    assert multiset(driver.rows()) == multiset(sessions(of, "ts", by, ORACLE, gap, most))
    assert driver.operator.state().in_use == (0, 0, 0)


def test_a_session_that_is_cut_holds_tuples_above_the_bound_only():
    driver = Driver(WindowAggregate(Session(10, most=25), {"n": Count()}, ("k",)), KEYED)
    for ts in (0, 8, 16, 24, 32, 40):
        driver.feed(0, keyed(ts))
    assert driver.operator.state().tuples == 6
    assert driver.feed(0, Linear(30))[-1] == (0, Linear(40))  # that from 32 on ends at 40 at the earliest
    assert driver.rows() == [{"k": "a", "window_start": 0, "window_end": 25, "n": 4}]
    assert (driver.operator.state().tuples, driver.operator.state().partials) == (2, 0)
    driver.feed(0, "end")
    assert driver.rows()[1:] == [{"k": "a", "window_start": 32, "window_end": 50, "n": 2}]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), of=rows(size=40), by=BY, gaps=st.tuples(st.integers(1, 6), st.integers(1, 30)))
def test_several_gaps_and_a_grid_in_one_operator(data, of, by, gaps):
    named = {"short": Session(gaps[0]), "grid": Tumbling(gaps[1]), "long": Session(gaps[1])}
    driver = Checked(WindowAggregate(named, AGGREGATES, by), SCHEMA).play(data.draw(events(of)))
    for name, gap in (("short", gaps[0]), ("long", gaps[1])):
        found = [
            {k: v for k, v in row.items() if k != "window"} for row in driver.rows() if row["window"] == name
        ]
        assert multiset(found) == multiset(sessions(of, "ts", by, ORACLE, gap))


def test_what_is_put_out_later_is_never_below_the_punctuation():
    driver = Driver(WindowAggregate(Session(10), {"n": Count()}), KEYED)
    driver.feed(0, keyed(7))
    assert driver.feed(0, Linear(9)) == [(0, Linear(17))]  # the session may grow, and no other ends before
    driver.feed(0, keyed(9))
    assert driver.feed(0, Linear(12)) == [(0, Linear(19))]
    (_, page), said = driver.feed(0, Linear(20))
    assert page.to_pylist() == [{"window_start": 7, "window_end": 19, "n": 2}]
    assert said == (0, Linear(30))  # of tuples from 20 on alone


def test_stamped_with_the_start_the_punctuation_waits_for_open_sessions():
    driver = Driver(WindowAggregate(Session(10), {"n": Count()}, stamp="start"), KEYED)
    driver.feed(0, keyed(7))
    assert driver.feed(0, Linear(15)) == [(0, Linear(7))]
    assert driver.feed(0, Linear(18))[1] == (0, Linear(18))


def test_each_group_has_a_bound_of_its_own():
    driver = Driver(WindowAggregate(Session(10), {"n": Count()}, ("k",)), KEYED)
    driver.feed(0, keyed(1, "a"))
    driver.feed(0, keyed(1, "b"))
    (_, page), said = driver.feed(0, group("a", 12))
    assert (page.to_pylist()[0]["k"], said) == ("a", (0, group("a", 22)))
    (_, page), said = driver.feed(0, group("b", FOREVER))
    assert (page.to_pylist()[0]["k"], said) == ("b", (0, group("b", FOREVER)))


def test_joint_punctuation_closes_the_groups_it_is_about():
    schema = Schema({"ts": pa.int64(), "day": pa.int64()}, "ts", "s")
    driver = Driver(WindowAggregate(Session(10), {"n": Count()}, ("day",)), schema)
    driver.feed(0, Page.of(schema, {"ts": [1, 1], "day": [1, 2]}))
    [(_, page)] = driver.feed(0, Joint((("day", 2), ("ts", 50))))
    assert [row["day"] for row in page.to_pylist()] == [1]


def test_a_late_tuple_joins_two_sessions_of_its_group_alone():
    driver = Driver(WindowAggregate(Session(10), {"n": Count(), "s": Sum("v")}, ("k",)), KEYED)
    for ts, k in ((0, "a"), (18, "a"), (0, "b"), (18, "b"), (9, "a")):
        driver.feed(0, keyed(ts, k, ts))
    driver.feed(0, "end")
    found = sorted(
        (row["k"], row["window_start"], row["window_end"], row["n"], row["s"]) for row in driver.rows()
    )
    assert found == [("a", 0, 28, 3, 27), ("b", 0, 10, 1, 0), ("b", 18, 28, 1, 18)]


def test_memory_is_that_of_open_sessions():
    driver = Driver(WindowAggregate(Session(10), {"n": Count()}, ("k",)), KEYED)
    for start in range(0, 20_000, 100):
        keys = [f"{start}-{i}" for i in range(50)]
        driver.feed(0, Page.of(KEYED, {"ts": [start] * 50, "k": keys, "v": [1] * 50}))
        driver.feed(0, Linear(start + 50))
        assert driver.operator.state().in_use == (0, 0, 0)
    assert driver.operator.state().nbytes < 1_000_000


def test_a_sum_that_does_not_fit_names_the_session():
    driver = Driver(WindowAggregate(Session(10), {"s": Sum("v")}, ("k",)), KEYED)
    driver.feed(0, keyed(5, "a", 2**62))
    driver.feed(0, keyed(9, "a", 2**62))
    with pytest.raises(ContractError, match=r"\[5, 19\) of group \{'k': 'a'\}"):
        driver.feed(0, Linear(30))


def test_a_sum_that_does_not_fit_once_narrower_sessions_have_left_names_the_wider_one():
    named = {"short": Session(2), "long": Session(10)}
    driver = Driver(WindowAggregate(named, {"s": Sum("v")}, ("k",)), KEYED)
    driver.feed(0, keyed(0, "a", 2**62))
    driver.feed(0, keyed(5, "a", 2**62))
    driver.feed(0, Linear(9))
    with pytest.raises(ContractError, match=r"\[0, 15\) of group \{'k': 'a'\}"):
        driver.feed(0, Linear(30))


@pytest.mark.parametrize("gap", [0, -1, "1 fortnight", 2**61])
def test_a_gap_must_be_a_length(gap):
    with pytest.raises(GraphError, match=r"most|fortnight"):
        WindowAggregate(Session(5, most=gap), {"n": Count()}).opened(KEYED)
    with pytest.raises(GraphError, match=r"gap|fortnight"):
        WindowAggregate(Session(gap), {"n": Count()}).opened(KEYED)


def test_times_must_leave_room_for_the_gap():
    driver = Driver(WindowAggregate(Session(10), {"n": Count()}), KEYED)
    with pytest.raises(ContractError, match="fit 64 bits"):
        driver.feed(0, keyed(2**63 - 5))


@pytest.mark.parametrize("given", [{"empty": True}, {"strategy": "panes"}, {"strategy": "windows"}])
@pytest.mark.parametrize("windows", [Session(10), {"grid": Tumbling(5), "visits": Session(10)}])
def test_what_only_grids_have_is_refused_and_not_ignored(windows, given):
    with pytest.raises(GraphError, match="needs windows on a grid"):
        WindowAggregate(windows, {"n": Count()}, **given).opened(KEYED)


def test_other_operators_name_the_way_out():
    operator = BufferingAggregate(Session(10), {"n": Count()})
    with pytest.raises(GraphError, match="use WindowAggregate"):
        operator.output_schemas((KEYED,) * len(operator.inputs))
    mixed = {"visits": Session(10), "last": LastRows(2, 5)}
    with pytest.raises(GraphError, match="use WindowAggregate"):
        PartialAggregate(mixed, {"n": Count()}).output_schemas((KEYED,))


def test_sessions_have_no_ids_that_a_tuple_alone_gives():
    with pytest.raises(GraphError, match="use WindowAggregate"):
        Bucket(Session(10)).opened(KEYED)


@pytest.mark.parametrize(("form", "behind"), [("cells", 50), ("runs", 1000)])
@pytest.mark.parametrize("wrong", [{1: [4, 4]}, {2: [1000, 1000]}, {1: [5, 50], 2: [5, 50]}])
def test_a_snapshot_with_runs_that_overlap_is_refused(form, behind, wrong):
    operator = WindowAggregate({"a": Session(10), "b": Session(30)}, {"n": Count()}).opened(KEYED)
    list(operator.on_page(0, keyed(5)))
    list(operator.on_page(0, keyed(behind)))
    list(operator.on_punctuation(0, Linear(20)))
    [store] = operator._closing.stores
    saved = store.save()
    assert saved[form][3].tolist() == [0, 1]  # the older one has left for the first definition
    store.load(Saved.of(saved), 1)
    for column, values in wrong.items():
        saved[form][column] = np.array(values)
    with pytest.raises(SnapshotError, match="apart"):
        store.load(Saved.of(saved), 1)


def test_a_snapshot_with_two_runs_in_one_cell_is_refused():
    operator = WindowAggregate({"a": Session(10), "b": Session(30)}, {"n": Count()}).opened(KEYED)
    list(operator.on_page(0, keyed(5)))
    list(operator.on_page(0, keyed(50)))
    [store] = operator._closing.stores
    saved = store.save()
    for column, values in ((2, [59, 9]), (3, [1, 1])):
        saved["cells"][column] = np.array(values)
    with pytest.raises(SnapshotError, match="apart"):
        store.load(Saved.of(saved), 1)


def test_a_snapshot_with_runs_of_lists_that_overlap_is_refused():
    operator = WindowAggregate(Session(10), {"n": Median("v")}).opened(KEYED)
    list(operator.on_page(0, keyed(5)))
    list(operator.on_page(0, keyed(50)))
    held = operator._closing.stores[0]._runs
    held.put(held.merged()._replace(first=np.array([5, 12])))
    with pytest.raises(SnapshotError, match="disjoint"):
        WindowAggregate(Session(10), {"n": Median("v")}).opened(KEYED).restore(operator.snapshot())


@pytest.mark.parametrize("keys", [1, 40])
def test_runs_far_back_are_found_in_sorted_pages(keys):
    """Sessions of one tuple each, backwards and forwards: lists are long, and lists of new runs come out of room."""
    rng = np.random.default_rng(keys)
    times = rng.permutation(np.arange(0, 12_000, 4)) + rng.integers(0, 2, 3000)
    names = rng.integers(0, keys, 3000).astype(str)
    given = [{"ts": t, "k": k, "v": 1} for t, k in zip(times.tolist(), names.tolist(), strict=True)]
    driver = Driver(
        WindowAggregate({"a": Session(3), "b": Session(9)}, {"n": Count(), "s": Sum("ts")}, ("k",)), KEYED
    )
    driver.feed(0, Page.of(KEYED, {"ts": times[:900], "k": names[:900], "v": [1] * 900}))
    driver.feed(0, Page.of(KEYED, {"ts": times[900:], "k": names[900:], "v": [1] * 2100}))
    driver.feed(0, Linear(6000))
    driver.feed(0, Linear(FOREVER))
    functions = {"n": len, "s": total}
    for name, gap in (("a", 3), ("b", 9)):
        found = [
            {key: row[key] for key in row if key != "window"}
            for row in driver.rows()
            if row["window"] == name
        ]
        assert multiset(found) == multiset(sessions(given, "ts", ("k",), functions, gap))
    assert driver.operator.state().in_use == (0, 0, 0)


@pytest.mark.parametrize("keys", [1, 3])
@pytest.mark.parametrize("size", [1, 100, 20_000])
def test_tuples_find_their_runs_among_very_many_that_come_and_go(keys, size):
    rng = np.random.default_rng(keys)
    schema = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
    driver = Driver(WindowAggregate({"w": Session(9)}, {"n": Count()}, by=("k",)), schema)
    given, low = [], 0
    for turn in range(60):
        spread = [60_000, 8_000][turn % 2]  # evenly, and close together
        ts, ks = low + rng.integers(0, spread, 400), rng.integers(0, keys, 400)
        given.append((ks, ts))
        for first in range(0, 400 if size > 1 else 40, size):
            some = slice(first, first + size if size > 1 or first < 39 else 400)
            driver.feed(0, Page.of(schema, {"ts": ts[some], "k": ks[some]}))
        if turn % 10 == 9:
            low += 5_000
            driver.feed(0, Linear(low))
    driver.feed(0, Linear(FOREVER))
    ks, ts = (np.concatenate(column) for column in zip(*given, strict=True))
    order = np.lexsort((ts, ks))
    ks, ts = ks[order], ts[order]
    first = np.flatnonzero(np.append(True, (ks[1:] != ks[:-1]) | (ts[1:] > ts[:-1] + 9)))
    counts = np.diff(np.append(first, ts.size))
    expected = {*zip(ks[first].tolist(), ts[first].tolist(), counts.tolist(), strict=True)}
    assert {(row["k"], row["window_start"], row["n"]) for row in driver.rows()} == expected


@pytest.mark.parametrize("room", [1, 40, 1 << 20])
def test_windows_leave_in_parts_where_there_is_no_room_for_all(monkeypatch, room):
    monkeypatch.setattr(session_store, "_ROOM", room)
    rng = np.random.default_rng(7)
    times, names = rng.permutation(np.arange(0, 900, 3)), rng.choice(["a", "b", "c"], 300)
    gaps = {"a": 4, "b": 9, "c": 20}
    sums = UserDefined(
        lambda v: (v.to_numpy(zero_copy_only=False),), lambda a, b: (a[0] + b[0],), lambda state: state[0],
        ("ts",), ("int64",), pa.int64(),
    )  # fmt: skip
    aggregates = {"n": Count(), "s": Sum("ts"), "u": sums}
    named = {name: Session(gap) for name, gap in gaps.items()}
    driver = Driver(WindowAggregate(named, aggregates, ("k",)), KEYED)
    driver.feed(0, Page.of(KEYED, {"ts": times, "k": names, "v": [1] * 300}))
    driver.feed(0, Linear(400))
    driver.feed(0, group("b", 700))
    driver.feed(0, Linear(FOREVER))
    given = [{"ts": t, "k": k} for t, k in zip(times.tolist(), names.tolist(), strict=True)]
    wanted = [
        {"window": name, **row}
        for name, gap in gaps.items()
        for row in sessions(given, "ts", ("k",), {"n": len, "s": total, "u": total}, gap)
    ]
    assert multiset(driver.rows()) == multiset(wanted)
    assert driver.operator.state().in_use == (0, 0, 0)


def test_gaps_share_runs_which_stay_until_the_longest_has_closed():
    named = {"long": Session(10), "short": Session(2)}
    driver = Driver(WindowAggregate(named, {"n": Count()}, ("k",)), KEYED)
    driver.feed(0, Page.of(KEYED, {"ts": [0, 1, 5, 20], "k": ["a"] * 4, "v": [1] * 4}))
    assert driver.operator.state().partials == 3  # 0 to 1, 5, 20: not one a definition
    driver.feed(0, Linear(9))  # both short ones are complete, the long one may go on
    assert [(row["window"], row["window_start"]) for row in driver.rows()] == [("short", 0), ("short", 5)]
    assert driver.operator.state().partials == 2  # only the long one asks for those two, together
    driver.feed(0, Linear(16))
    assert driver.rows()[2:] == [{"k": "a", "window": "long", "window_start": 0, "window_end": 15, "n": 3}]
    assert driver.operator.state().partials == 1


def test_gaps_that_share_runs_keep_what_has_left_in_a_snapshot():
    named = {"long": Session(10), "short": Session(2)}
    driver = Driver(WindowAggregate(named, {"n": Count()}, ("k",)), KEYED)
    driver.feed(0, keyed(0))
    driver.feed(0, Linear(9))
    restored = WindowAggregate(named, {"n": Count()}, ("k",)).opened(KEYED)
    restored.load(Saved.of(driver.operator.save()))
    left = [
        page.to_pylist() for _, page in restored.on_punctuation(0, Linear(FOREVER)) if isinstance(page, Page)
    ]
    assert [row["window"] for rows in left for row in rows] == ["long"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("stamp", ["end", "start"])
def test_windows_leave_with_the_first_bound_above_their_end(seed, stamp):
    """Few tuples and many bounds: runs wait for wider windows while newer ones come near them, from both sides."""
    rng = np.random.default_rng(seed)
    gaps = {"5": 5, "12": 12, "20": 20}
    named = {name: Session(gap) for name, gap in gaps.items()}
    operator = WindowAggregate(named, {"n": Count()}, ("k",), stamp=stamp).opened(KEYED)
    given, found, bound, passed = [], [], 0, -FOREVER
    for _ in range(60):
        for ts, k in zip(
            bound + rng.integers(0, 15, rng.integers(0, 3)), rng.choice(["a", "b"], 2), strict=False
        ):
            assert list(operator.on_page(0, keyed(int(ts), str(k)))) == []
            given.append({"ts": int(ts), "k": str(k), "v": 1})
        bound += int(rng.integers(0, 7))
        if rng.random() < 0.1:
            state = Saved.of(operator.save())
            operator = WindowAggregate(named, {"n": Count()}, ("k",), stamp=stamp).opened(KEYED)
            operator.load(state)
        for _, message in operator.on_punctuation(0, Linear(bound)):
            if isinstance(message, Page):
                found += message.to_pylist()
            else:
                passed = message.below
        windows = [
            {"window": name, **row}
            for name, gap in gaps.items()
            for row in sessions(given, "ts", ("k",), {"n": len}, gap)
        ]
        due = [row for row in windows if row["window_end"] < bound]
        assert multiset(found) == multiset(due)
        rest = [row["window_" + stamp] for row in windows if row["window_end"] >= bound]
        assert passed == min([bound + 5 * (stamp == "end"), *rest])  # of later tuples alone, or of open ones
        waiting = [row for row in windows if row["window"] != "5" and row["window_end"] >= bound]
        cells = {(row["k"], row["ts"] // 5) for row in given if row["ts"] // 5 >= bound // 5 - 1}
        assert operator.state().partials <= len(waiting) + len(cells)


def test_a_sum_that_does_not_fit_over_several_cells_names_the_session_when_it_is_put_together():
    gaps = {"short": Session(10), "long": Session(40)}
    for then in (Linear(31), Linear(18), keyed(5000, "b"), group("a", 31)):
        driver = Driver(WindowAggregate(gaps, {"s": Sum("v")}, ("k",)), KEYED)
        for ts, k, v in ((5, "b", 1), (5, "a", 2**62), (12, "a", 2**62), (21, "a", 1)):
            driver.feed(0, keyed(ts, k, v))
        with pytest.raises(ContractError, match=r"\[5, 31\) of group \{'k': 'a'\}"):
            feed_all(driver, then, Linear(31), Linear(60))


def feed_all(driver, *messages):
    for message in messages:
        driver.feed(0, message)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("by", [("k",), ()])
def test_runs_in_cells_and_in_lists_by_turns_are_those_of_the_definition(seed, by):
    """Bounds of the stream and of groups, snapshots midway, and a tuple far ahead, behind which runs are in lists."""
    rng = np.random.default_rng(seed)
    named = {"b": Session(7), "a": Session(3), "c": Session(20)}
    make = WindowAggregate(named, {"n": Count(), "s": Sum("v")}, by).opened
    operator, low, found, given, forms = make(KEYED), 0, [], [], set()
    bounds = {str(k): 0 for k in range(30)}

    def put_out(messages):
        found.extend(row for _, page in messages if isinstance(page, Page) for row in page.to_pylist())

    for step in range(80):
        ks = rng.integers(0, 30, 60).astype(str).tolist()
        ts = [max(low, bounds[k]) + int(rng.integers(0, 9)) for k in ks]
        ts[0] += 400 * (step in (20, 60))
        put_out(operator.on_page(0, Page.of(KEYED, {"ts": ts, "k": ks, "v": ts})))
        given += [{"ts": t, "k": k, "v": t} for t, k in zip(ts, ks, strict=True)]
        low += int(rng.integers(0, 12))
        put_out(operator.on_punctuation(0, Linear(low)))
        for k in (some for some in bounds if by and rng.random() < 0.1):
            bounds[k] = max(bounds[k], low + int(rng.integers(0, 20)))
            put_out(operator.on_punctuation(0, group(k, bounds[k])))
        [store] = operator._closing.stores
        forms.add("cells" if "cells" in store.save() else "lists")
        if step % 7 == 0:
            state = Saved.of(operator.save())
            operator = make(KEYED)
            operator.load(state)
        if step % 10 == 0:
            assert multiset(found) == multiset(_complete(given, named, by, low, bounds))
    put_out(operator.on_punctuation(0, Linear(FOREVER)))
    assert multiset(found) == multiset(_complete(given, named, by, FOREVER, bounds))
    assert operator.state().in_use == (0, 0, 0)
    assert forms == {"cells", "lists"}


def _complete(given, named, by, low, bounds):
    """Return the sessions that bounds of the stream and of groups complete."""
    for name, session in named.items():
        for row in sessions(given, "ts", by, {"n": len, "s": total}, session.gap):
            if row["window_end"] < max(low, bounds[row["k"]] if by else low):
                yield {"window": name, **row}


def test_a_page_takes_as_many_calls_whatever_its_rows() -> None:
    """Tuples, gaps, late tuples and definitions take steps in kernels alone."""
    schema = Schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()}, "ts", "s")
    definitions = {f"gap {gap}": Session(gap) for gap in (3, 5, 8)}
    operator = WindowAggregate(definitions, {"n": Count(), "s": Sum("v")}, by=("k",)).opened(schema)
    numba()  # as after many calls
    found = list[int]()
    for many in (50, 500, 50, 500):
        times = np.random.default_rng(1).integers(0, 1_000, many)
        page = Page.of(schema, {"ts": times, "k": times % 7, "v": times})
        found.append(len(calls(lambda page=page: list(operator.on_page(0, page)))))  # type: ignore[misc]
    assert found[-1] < found[-2] + 50
