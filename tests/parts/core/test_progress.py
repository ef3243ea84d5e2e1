from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oop_engine import FOREVER, NEVER, GroupWise, Joint, Linear, Punctuation
from oop_engine.core.groups import bound_table, endings, input_bounds
from oop_engine.core.snapshot import pack, unpack
from oop_engine.extend import Progress
from oop_engine.operators.keys.tables import IN_KERNELS
from tests.naive.kernel import FIRST, GROUPS, TIMES, Group, Promise

INPUTS = 3


@pytest.fixture(params=[0, 3, bound_table._MANY], ids=lambda many: f"many={many}")
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set from how many groups on a bound does not look at all of them."""
    _many_are(monkeypatch, request.param)


def _many_are(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    for module in (bound_table, endings, input_bounds):
        monkeypatch.setattr(module, "_MANY", groups)


BOUNDS = st.sampled_from([NEVER, *TIMES, TIMES.stop, FOREVER])
ALL = pa.record_batch({"k": pa.array([g[0] for g in GROUPS], pa.string())})
Script = list[tuple[int, Punctuation]]


@st.composite
def group_wise(draw: st.DrawFn) -> GroupWise:
    groups = draw(st.lists(st.sampled_from(GROUPS[:3]), unique=True, max_size=3))
    bounds = [draw(BOUNDS) for _ in groups]
    return GroupWise(
        pa.record_batch({"k": pa.array([g[0] for g in groups], pa.string())}), np.array(bounds, np.int64)
    )


PUNCTUATION = st.one_of(BOUNDS.map(Linear), group_wise())


def scripts(ports: int) -> st.SearchStrategy[Script]:
    return st.lists(st.tuples(st.integers(0, ports - 1), PUNCTUATION), max_size=12)


def never_again(punctuation: Punctuation, ended: set[Group]) -> Punctuation:
    """Leave out groups that have ended on a port: nothing grammatical speaks of them again."""
    if not isinstance(punctuation, GroupWise):
        return punctuation
    keys = [tuple(row.values()) for row in punctuation.groups.to_pylist()]
    fresh = np.array([key not in ended for key in keys], np.bool_)
    ended |= {k for k, below in zip(keys, punctuation.below.tolist(), strict=True) if below == FOREVER}
    return punctuation.filter(fresh)


def moved(progress: Progress, *, remember_ended: bool, inputs: int = INPUTS) -> Progress:
    fresh = Progress(inputs, remember_ended=remember_ended)
    fresh.load(unpack("test", pack("test", progress.save())))
    return fresh


def clipped(bounds: np.ndarray[Any, Any]) -> list[int]:
    return np.clip(bounds, FIRST, TIMES.stop).tolist()


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("remember_ended", [True, False])
@pytest.mark.parametrize("inputs", [1, 2, INPUTS])
def test_together_inputs_promise_exactly_what_each_of_them_does(inputs: int, remember_ended: bool) -> None:
    @given(scripts(inputs))
    def holds(script: Script) -> None:
        progress = Progress(inputs, remember_ended=remember_ended)
        ins, out = [Promise() for _ in range(inputs)], Promise()
        ended: list[set[Group]] = [set() for _ in range(inputs)]
        for port, drawn in script:
            punctuation = never_again(drawn, ended[port])
            ins[port].add(punctuation)
            for said in progress.advance(port, punctuation):
                before = set(out.cells)
                out.add(said)
                assert out.cells > before or _beyond(said)  # only when it has grown
            assert out.cells == set.intersection(*(i.cells for i in ins))  # sound and complete
            progress = moved(progress, remember_ended=remember_ended, inputs=inputs)

    holds()


def _beyond(punctuation: Punctuation) -> bool:
    """Growth outside the cells that the oracle knows."""
    below = punctuation.below if isinstance(punctuation, Linear | GroupWise) else NEVER
    return bool(np.any((np.asarray(below) <= FIRST) | (np.asarray(below) > TIMES.stop)))


@given(scripts(INPUTS))
def test_bounds_are_those_of_each_group(script: Script) -> None:
    progress, ins = Progress(INPUTS, remember_ended=True), [Promise() for _ in range(INPUTS)]
    for port, punctuation in script:
        ins[port].add(punctuation)
        progress.advance(port, punctuation)
        for p, one in enumerate(ins):
            assert clipped(progress.bounds(ALL, p)) == [one.bound(g) for g in GROUPS]
        together = [min(one.bound(g) for one in ins) for g in GROUPS]
        assert clipped(progress.bounds(ALL)) == together
        assert progress.linear == min(progress.linear_of(p) for p in range(INPUTS))


@pytest.mark.usefixtures("many")
@given(scripts(INPUTS))
def test_tables_in_kernels_pass_on_and_save_the_same(script: Script) -> None:
    one, other = Progress(INPUTS), Progress(INPUTS, tables=IN_KERNELS)
    for port, punctuation in script:
        assert one.advance(port, punctuation) == other.advance(port, punctuation)
        assert one.bounds(ALL).tolist() == other.bounds(ALL).tolist()
        saved = pack("test", one.save())
        assert saved == pack("test", other.save())
        other = Progress(INPUTS, tables=IN_KERNELS)
        other.load(unpack("test", saved))


@given(scripts(2))
def test_promises_say_it_all_again(script: Script) -> None:
    progress = Progress(2, remember_ended=True)
    for port, punctuation in script:
        progress.advance(port, punctuation)
    again, one = Promise(), Progress(2, remember_ended=True)
    for said in progress.punctuation():
        again.add(said)
        for port in range(2):
            one.advance(port, said)
    assert [again.bound(g) for g in GROUPS] == clipped(progress.bounds(ALL))
    assert clipped(one.bounds(ALL)) == clipped(progress.bounds(ALL))
    assert len(progress.punctuation()) <= 2


@given(scripts(2))
def test_a_group_is_kept_only_while_some_input_says_more_of_it(script: Script) -> None:
    progress = Progress(2)
    latest: dict[tuple[int, Group], int] = {}
    for port, punctuation in script:
        progress.advance(port, punctuation)
        if isinstance(punctuation, GroupWise):
            for row, below in zip(punctuation.groups.to_pylist(), punctuation.below.tolist(), strict=True):
                key = (port, tuple(row.values()))
                latest[key] = max(latest.get(key, NEVER), below)
        more = {g for (p, g), below in latest.items() if below > progress.linear_of(p)}
        assert progress.groups <= len(more)
    for port in range(2):
        progress.advance(port, Linear(FOREVER))
    assert progress.groups == 0


def groups(**bounds: int) -> GroupWise:
    return GroupWise.of({"k": list(bounds)}, list(bounds.values()))


def test_a_linear_promise_that_catches_up_forgets_the_group() -> None:
    progress = Progress()
    assert progress.advance(0, groups(a=5, b=9)) == [groups(a=5, b=9)]
    before = progress.nbytes
    assert progress.advance(0, Linear(5)) == [Linear(5)]
    assert progress.groups == 1
    assert progress.nbytes < before
    assert progress.bounds(ALL).tolist() == [5, 9, 5, 5]


def test_an_ended_group_is_forgotten_unless_it_is_to_be_remembered() -> None:
    short, long = Progress(2), Progress(2, remember_ended=True)
    for progress in (short, long):
        assert progress.advance(0, groups(a=FOREVER)) == []
        assert progress.groups == 1
        assert progress.advance(1, groups(a=FOREVER)) == [groups(a=FOREVER)]
    assert (short.groups, long.groups) == (0, 1)
    assert long.bounds(ALL).tolist() == [FOREVER, NEVER, NEVER, NEVER]
    long.advance(0, Linear(FOREVER))
    assert long.advance(1, Linear(FOREVER)) == [Linear(FOREVER)]
    assert long.groups == 0


def test_promises_that_shrink_or_repeat_say_nothing() -> None:
    progress = Progress()
    progress.advance(0, Linear(5))
    progress.advance(0, groups(a=7))
    for idle in (Linear(5), Linear(3), groups(a=7), groups(a=6), groups(b=4), groups(), Linear(NEVER)):
        assert progress.advance(0, idle) == []
    assert progress.linear == 5


def test_sets_of_attributes_are_kept_apart_and_a_row_has_the_best_of_them() -> None:
    progress = Progress(remember_ended=True)
    progress.advance(0, GroupWise.of({"k": ["a"]}, [10]))
    progress.advance(0, GroupWise.of({"k": ["a", "b"], "n": [1, 1]}, [5, 20]))
    rows = pa.record_batch({"n": [1, 2, 1], "k": ["a", "a", "b"]})
    assert progress.bounds(rows).tolist() == [10, 10, 20]
    assert progress.bounds(rows.select(["k"])).tolist() == [10, 10, NEVER]
    assert progress.bounds(rows.select(["n"])).tolist() == [NEVER] * 3
    assert progress.groups == 3
    progress.advance(0, Linear(15))
    assert progress.groups == 1


def test_inputs_may_name_the_attributes_in_any_order() -> None:
    progress = Progress(2)
    one = pa.record_batch({"k": pa.array(["a"]), "n": pa.array([1])})
    progress.advance(0, GroupWise(one, np.array([10])))
    assert progress.advance(1, GroupWise.of({"n": [1, 2], "k": ["a", "b"]}, [7, 8])) == [
        GroupWise(one, np.array([7]))
    ]
    assert progress.groups == 2


def test_a_joint_promise_passes_only_alone() -> None:
    joint = Joint.of(ts=1, ts_right=2)
    assert Progress().advance(0, joint) == [joint]
    assert Progress(2).advance(0, joint) == []


def test_a_group_given_twice_in_one_message_has_the_larger_bound() -> None:
    progress = Progress()
    progress.advance(0, GroupWise.of({"k": ["a", "b", "a"]}, [9, 2, 4]))
    assert progress.bounds(ALL).tolist()[:2] == [9, 2]


def test_many_groups_grow_the_table_and_shrink_it() -> None:
    progress = Progress(2)
    for start in range(0, 1000, 100):
        keys = pa.record_batch({"n": pa.array(range(start, start + 100))})
        progress.advance(0, GroupWise(keys, np.arange(start, start + 100)))
    rows = pa.record_batch({"n": [0, 500, 999, 1000]})
    assert progress.bounds(rows, 0).tolist() == [0, 500, 999, NEVER]
    progress.advance(0, Linear(990))
    assert progress.groups == 9
    assert progress.bounds(rows, 0).tolist() == [990, 990, 999, 990]


def test_what_is_loaded_is_a_copy() -> None:
    one, two = Progress(), Progress()
    one.advance(0, groups(a=5))
    two.load(unpack("test", pack("test", one.save())))
    two.advance(0, Linear(4))
    two.advance(0, groups(a=8))
    assert one.linear == NEVER
    assert one.bounds(ALL).tolist() == [5, NEVER, NEVER, NEVER]


@pytest.mark.parametrize("inputs", [1, 2])
def test_the_end_of_a_group_ends_what_is_part_of_it(inputs):
    """What is kept does not grow with groups that are over, however they were ended."""
    progress = Progress(inputs)
    for k in range(3):
        for port in range(inputs):
            progress.advance(port, GroupWise.of({"j": [1, 2], "k": [k, k]}, [5, 6]))
        for port in range(inputs):
            assert progress.groups == 2 + port
            said = progress.advance(port, GroupWise.of({"k": [k]}, [FOREVER]))
            assert said == ([GroupWise.of({"k": [k]}, [FOREVER])] if port == inputs - 1 else [])
        assert progress.groups == 0


@pytest.mark.parametrize("inputs", [1, 2, 4])
def test_a_bound_looks_only_at_groups_that_it_changes(monkeypatch: pytest.MonkeyPatch, inputs: int) -> None:
    _many_are(monkeypatch, 100)
    looked = list[int]()
    passed_by, keep = bound_table.BoundTable._passed_by, input_bounds.InputBounds._keep

    def of_several(table: Any, port: int, linear: Any) -> Any:
        slots = passed_by(table, port, linear)
        looked.append(slots.size)
        return slots

    def of_one(table: Any, kept: Any) -> None:
        looked.append(kept.size)
        keep(table, kept)

    monkeypatch.setattr(bound_table.BoundTable, "_passed_by", of_several)
    monkeypatch.setattr(input_bounds.InputBounds, "_keep", of_one)
    progress = Progress(inputs)
    for port in range(inputs):
        progress.advance(port, GroupWise.of({"k": list(range(1000))}, [1000 + of for of in range(1000)]))
    looked.clear()
    for below in range(0, 1400, 10):
        for port in range(inputs):
            progress.advance(port, Linear(below))
    assert sum(looked) <= max(
        400 * (inputs + 1), 1000
    )  # each group once an input, in place of 1000 for each bound
    assert progress.groups == 1000  # less than half are passed
    progress.advance(0, Linear(1700))
    for port in range(1, inputs):
        progress.advance(port, Linear(1700))
    assert progress.groups == 299


@pytest.mark.parametrize("low", [5, 2000])
def test_of_one_input_groups_that_are_passed_go_whenever_they_came(
    monkeypatch: pytest.MonkeyPatch, low: int
) -> None:
    """Few groups far ahead, then many: few stay behind the stream, and all looks together cost O(groups)."""
    _many_are(monkeypatch, 10)
    looked, keep = list[int](), input_bounds.InputBounds._keep

    def counted(table: Any, kept: Any) -> None:
        looked.append(kept.size)
        keep(table, kept)

    monkeypatch.setattr(input_bounds.InputBounds, "_keep", counted)
    progress = Progress(1)
    progress.advance(0, GroupWise.of({"k": list(range(-50, 0))}, [10_000] * 50))
    progress.advance(0, Linear(1))
    for first in range(0, 5000, 50):
        progress.advance(0, GroupWise.of({"k": [first + of for of in range(50)]}, [low + first] * 50))
        progress.advance(0, Linear(first))
        assert progress.groups <= 3 * (50 + min(low + 50, first + 50))
    progress.advance(0, Linear(low + 5000))
    assert progress.groups <= 100
    assert sum(looked) <= 4 * 5050


def test_groups_that_no_input_is_ahead_of_go_though_one_input_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _many_are(monkeypatch, 10)
    progress = Progress(2)
    for first in range(0, 5000, 50):
        progress.advance(0, GroupWise.of({"k": [first + of for of in range(50)]}, [first + 50] * 50))
        progress.advance(0, Linear(first))
        assert progress.groups <= 200


def test_parts_of_groups_that_are_over_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    _many_are(monkeypatch, 10)
    progress = Progress(1)
    pairs = [(host, port) for host in range(100) for port in range(4)]
    both = {"host": [host for host, _ in pairs], "port": [port for _, port in pairs]}
    progress.advance(0, GroupWise.of(both, [5] * 400))
    for host in range(100):
        progress.advance(0, GroupWise.of({"host": [host]}, [FOREVER]))
    assert progress.groups < 100
