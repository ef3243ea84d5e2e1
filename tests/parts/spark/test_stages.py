"""How graphs are cut: what is fused, what is shuffled and why, and what cannot run on Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from oop_engine import Graph, GraphError, Operator, Page, Schema
from oop_engine.core.graphs.graph import Stream
from oop_engine.extend import Emission
from oop_engine.operators.aggregates import Count, Sum
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.filter import Filter
from oop_engine.operators.joining.bands import Band
from oop_engine.operators.meld import Meld
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import BoundedDisorder, Heartbeat, Ordered
from oop_engine.operators.project import Project
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.split import Split
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Landmark, Tumbling, TupleBased
from oop_engine.spark.plan.cut import cut
from oop_engine.spark.plan.explained import explained
from oop_engine.spark.plan.key_groups import key_groups, spread
from oop_engine.spark.plan.pieces import Cut

CLICKS = Schema({"ts": pa.int64(), "user": pa.string(), "url": pa.string(), "ms": pa.int64()}, "ts", "s")


def counted(*by: str, value: str | None = None) -> WindowAggregate:
    return WindowAggregate(Tumbling(10), {"n": Count() if value is None else Sum(value)}, by=by)


def clicks(graph: Graph, name: str = "clicks") -> Stream:
    return graph.add(f"{name}-edge", Punctuate(Ordered()), graph.source(name, CLICKS))


def stages_of(found: Cut) -> list[list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    return [[(c.nodes, c.attributes) for c in found.at(level)] for level in range(1, found.levels + 1)]


def test_what_groups_by_user_and_by_user_and_url_shares_one_shuffle_by_user() -> None:
    graph = Graph("sessions")
    fine = graph.add("fine", counted("user", "url"), clicks(graph))
    graph.sink("out", graph.add("coarse", counted("user", value="n"), fine))
    assert stages_of(cut(graph)) == [[(("fine", "coarse"), ("user",))]]


def parted() -> Graph:
    """What is grouped by user and url goes on, in part, by user, and in part by url."""
    graph = Graph("parted")
    fine = graph.add("fine", counted("user", "url"), clicks(graph))
    split = graph.add("split", Split({"much": pa.compute.field("n") > 3}, rest="little"), fine)
    graph.sink("of-users", graph.add("users", counted("user", value="n"), split["much"]))
    graph.sink("of-urls", graph.add("urls", counted("url", value="n"), split["little"]))
    return graph


def test_other_keys_are_another_shuffle() -> None:
    first, second = stages_of(cut(parted()))
    assert [len(first), len(second)] == [1, 1]
    assert first[0][1] in (("user",), ("url",))


@pytest.mark.parametrize(("hot", "kept"), [("much", "users"), ("little", "urls")])
def test_rates_decide_between_two_that_cannot_both_be_fused(hot: str, kept: str) -> None:
    rates = {Stream("fine", "out"): 5000, Stream("split", "much"): 10, Stream("split", "little"): 10}
    rates[Stream("split", hot)] = 1000
    first, second = stages_of(cut(parted(), score="communication", rates=rates))
    assert first[0][0] == ("fine", "split", kept)
    assert len(second) == 1


def test_a_renamed_key_is_still_that_key_and_a_dropped_one_is_not() -> None:
    for columns, levels in (({"ts": "ts", "who": "user"}, 1), ({"ts": "ts", "who": "url"}, 2)):
        graph = Graph("renamed")
        join = OAJoin([("user", "user")], Band(0, 5))
        pairs = graph.add("pairs", join, clicks(graph, "a"), clicks(graph, "b"))
        named = graph.add("named", Project(columns), pairs)
        graph.sink("out", graph.add("count", counted("who"), named))
        assert cut(graph).levels == levels


def test_stateless_operators_never_cause_a_shuffle() -> None:
    graph = Graph("stateless")
    union = graph.add("union", Meld(2), clicks(graph, "a"), clicks(graph, "b"))
    slow = graph.add("slow", Filter(pa.compute.field("ms") > 100), union)
    per_user = graph.add("per-user", counted("user"), slow)
    graph.sink("out", graph.add("many", Filter(pa.compute.field("n") > 3), per_user))
    found = cut(graph)
    assert stages_of(found) == [[(("union", "slow", "per-user", "many"), ("user",))]]
    assert found.components[0].groups == 8


def test_what_needs_order_is_not_cut_off_behind_what_only_keeps_it() -> None:
    """A projection needs no order, but what follows it does, so nothing may be shuffled before it."""
    graph = Graph("counts of counts")
    users = graph.add("users", counted("user"), clicks(graph))
    numbers = graph.add("numbers", Project(["window_end", "n"]), users)
    graph.sink(
        "out", graph.add("equal", WindowAggregate(Tumbling(50), {"users": Count()}, by=("n",)), numbers)
    )
    assert len(stages_of(cut(graph))) == 2
    assert stages_of(cut(in_order(graph))) == [[(("users", "numbers", "equal"), ())]]


def test_one_source_without_keys_needs_no_shuffle_at_all() -> None:
    graph = Graph("whole")
    graph.sink("out", graph.add("count", counted(), clicks(graph)))
    found = cut(graph)
    assert found.levels == 0
    assert found.chains[0].nodes == ("clicks-edge", "count")


@pytest.mark.parametrize("windows", [Landmark(10), TupleBased(10, 5)])
def test_windows_that_need_the_whole_stream_are_not_divided(windows: Landmark | TupleBased) -> None:
    graph = Graph("whole windows")
    union = graph.add("union", Meld(2), clicks(graph, "a"), clicks(graph, "b"))
    graph.sink("out", graph.add("count", WindowAggregate(windows, {"n": Count()}, by=("user",)), union))
    [component] = cut(graph).components
    assert component.groups == 1


def test_a_clock_behind_a_union_is_refused() -> None:
    graph = Graph("clock")
    union = graph.add("union", Meld(2), graph.source("a", CLICKS), graph.source("b", CLICKS))
    late = graph.add("late", Punctuate(Heartbeat(BoundedDisorder(5), 10, 5)), union)
    graph.sink("out", graph.add("count", counted("user"), late))
    with pytest.raises(GraphError, match=r"node 'late': .*wants the arrival clock.*put it between a source"):
        cut(graph)


class Remembers(Operator):
    """Keeps the last page, and cannot be saved."""

    def open(self) -> None:
        self.last: Page | None = None

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        self.last = page
        yield 0, page


def test_an_operator_that_cannot_be_saved_is_refused() -> None:
    graph = Graph("unsaved")
    graph.sink("out", graph.add("last", Remembers(), clicks(graph)))
    with pytest.raises(
        GraphError, match=r"node 'last': Remembers keeps state and cannot be saved.*give it save"
    ):
        cut(graph)


def test_a_cut_is_explained() -> None:
    graph = Graph("explained")
    fine = graph.add("per-user", counted("user"), clicks(graph))
    graph.sink("out", graph.add("total", counted(value="n"), fine))
    text = explained(cut(graph, groups=4))
    assert "where 'clicks' is read: clicks-edge" in text
    assert "in 4 key groups, divided by user" in text
    assert "per-user is divided by user, total by nothing: no column divides both" in text


def decimals_to(stop: int) -> pa.Array:
    return pa.array(range(stop)).cast(pa.decimal128(21, 2))


def test_equal_keys_are_in_one_group_whatever_their_column_looks_like() -> None:
    values = ["b", "a", None, "b", "ä"]
    plain = key_groups([pa.array(values)], 16)
    encoded = key_groups([pa.array(values).dictionary_encode()], 16)
    assert plain.tolist() == encoded.tolist()
    for kind in (pa.large_string(), pa.binary(), pa.large_binary()):
        assert key_groups([pa.array(values).cast(kind)], 16).tolist() == plain.tolist()
    assert key_groups([pa.array(["c", *values, ""]).slice(1, 5)], 16).tolist() == plain.tolist()
    decimals = pa.array([1, 20, None, 1, -5]).cast(pa.decimal128(19, 0))
    groups = key_groups([decimals], 16).tolist()
    assert key_groups([decimals.slice(1, 3)], 16).tolist() == groups[1:4]
    assert groups[0] == groups[3] != groups[1]
    zeros = key_groups([pa.array([0.0, -0.0, float("nan"), float("nan")])], 1 << 20)
    assert zeros[0] == zeros[1]
    assert zeros[2] == zeros[3]
    for column in (
        pa.array(range(1000)),
        pa.array([f"user-{n:05d}" for n in range(1000)]),
        decimals_to(1000),
    ):
        assert len(set(key_groups([column], 64).tolist())) == 64


def test_targets_are_different_and_where_they_are_wanted() -> None:
    numbers = spread([0, 0, 1, 2, 1, 0], 3)
    assert len(set(numbers)) == 6
