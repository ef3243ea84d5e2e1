"""Random graphs of several operators: in order = out of order = the definitions, one after the other.

Each stream of a graph under construction carries the rows that the definitions of
``tests.naive`` give for it, so a graph and its oracle are built in one go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from oop_engine import Page, Schema
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.operators.aggregates import Count, First, Last, Max, Min, Sum
from oop_engine.operators.distinct import Distinct
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.filter import Filter
from oop_engine.operators.joining.bands import Band, TumblingBand
from oop_engine.operators.meld import Meld
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import BoundedCount, BoundedDisorder, PerGroup
from oop_engine.operators.policies.running_bound import Policy
from oop_engine.operators.project import Project
from oop_engine.operators.rewrites.in_order import Windowing, in_order
from oop_engine.operators.rewrites.prune_punctuation import prune_punctuation
from oop_engine.operators.rewrites.pruned import pruned
from oop_engine.operators.split import Split
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Sliding
from oop_engine.operators.with_columns import WithColumns
from oop_engine.runners.replay import replay
from oop_engine.testing import multiset
from tests.naive import joins, stateless, windows
from tests.naive.many_windows import many

Row = dict[str, Any]

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string(), "n": pa.int64()}, "ts", "s")
ROWS: st.SearchStrategy[Row] = st.fixed_dictionaries(
    {
        "ts": st.integers(-20, 40),
        "k": st.sampled_from(["a", "b", None]),
        "n": st.sampled_from([0, 1, 2, None]),
    }
)
MOST_ROWS = 200
WINDOWING: list[Windowing] = ["buffer", "reduce", "early"]
AGGREGATES: dict[str, Callable[[str], Any]] = {
    "sum": Sum,
    "min": Min,
    "max": Max,
    "first": First,
    "last": Last,
}
WINDOW = {"window", "window_start", "window_end"}
LENGTHS = st.tuples(st.integers(1, 25), st.integers(5, 15), st.sampled_from([0, 3, -7]))


@dataclass(frozen=True)
class Told:
    """A stream, and the rows that there must be in it."""

    stream: Stream
    schema: Schema
    rows: list[Row]

    @property
    def numbers(self) -> list[str]:
        return [n for n in self.schema.names if pa.types.is_integer(self.schema.type_of(n))]

    @property
    def others(self) -> list[str]:
        return [n for n in self.schema.names if n != self.schema.progressing]


@dataclass
class Built:
    graph: Graph
    feeds: dict[str, list[tuple[int, Row]]]  # arrival, row
    told: list[Told]

    def add(self, operator: Any, inputs: list[Told], *rows: list[Row]) -> None:
        stream = self.graph.add(f"op{len(self.graph.nodes)}", operator, *(told.stream for told in inputs))
        schemas = operator.output_schemas(tuple(told.schema for told in inputs))
        self.told += [
            Told(stream[port], schema, of_port)
            for port, schema, of_port in zip(operator.outputs, schemas, rows, strict=True)
        ]


def add_source(draw: st.DrawFn, built: Built) -> None:
    """A source whose tuples come at most ``slack`` late, and what stands at its edge."""
    name = f"source{len(built.feeds)}"
    slack = draw(st.integers(0, 6))
    rows = draw(st.lists(st.tuples(ROWS, st.integers(0, slack)), min_size=5, max_size=16))
    built.feeds[name] = sorted(((row["ts"] + late, row) for row, late in rows), key=lambda pair: pair[0])
    policies: list[Policy] = [
        BoundedDisorder(slack),
        BoundedCount(16),
        PerGroup(BoundedDisorder(slack), ("k",), linear=BoundedDisorder(slack + 5)),
        PerGroup(BoundedDisorder(slack), ("n", "k"), linear=BoundedCount(16)),
    ]
    policy = draw(st.sampled_from(policies))
    edge = Punctuate(policy, granularity=draw(st.sampled_from([None, 1, 5])))
    stream = built.graph.add(f"{name}-edge", edge, built.graph.source(name, SCHEMA))
    built.told.append(Told(stream, SCHEMA, [row for _, row in built.feeds[name]]))


def predicate(draw: st.DrawFn, told: Told) -> tuple[pc.Expression, Callable[[Row], bool | None]]:
    column, least = draw(st.sampled_from(told.numbers)), draw(st.integers(-5, 10))
    return pc.field(column) >= least, lambda row: None if row[column] is None else row[column] >= least


def add_select(draw: st.DrawFn, built: Built) -> None:
    told = draw(st.sampled_from(built.told))
    expression, test = predicate(draw, told)
    built.add(Filter(expression), [told], stateless.select(told.rows, test))


def add_split(draw: st.DrawFn, built: Built) -> None:
    told = draw(st.sampled_from(built.told))
    expression, test = predicate(draw, told)
    built.add(Split({"much": expression}, rest="little"), [told], *stateless.split(told.rows, [test]))


def add_project(draw: st.DrawFn, built: Built) -> None:
    told = draw(st.sampled_from(built.told))
    kept = [n for n in told.schema.names if n == told.schema.progressing or draw(st.booleans())]
    renamed = {n.replace("k", "key"): n for n in kept}
    values = {new: (lambda row, old=old: row[old]) for new, old in renamed.items()}
    built.add(Project(renamed), [told], stateless.project(told.rows, values))


def add_apply(draw: st.DrawFn, built: Built) -> None:
    told = draw(st.sampled_from(built.told))
    column = draw(st.sampled_from(told.numbers))
    new = f"more{len(built.told)}"
    plus = stateless.apply(told.rows, {new: lambda row: None if row[column] is None else row[column] + 1})
    built.add(WithColumns({new: pc.field(column) + 1}), [told], plus)


def add_distinct(draw: st.DrawFn, built: Built) -> None:
    told = draw(st.sampled_from(built.told))
    by = [n for n in told.others if draw(st.booleans())]
    names = [n for n in told.schema.names if n in by or n == told.schema.progressing]
    built.add(Distinct(by), [told], stateless.distinct(told.rows, names))


def add_meld(draw: st.DrawFn, built: Built) -> None:
    first = draw(st.sampled_from(built.told))
    like = [told for told in built.told if told.schema == first.schema]
    inputs = draw(st.lists(st.sampled_from(like), min_size=1, max_size=3))
    built.add(Meld(len(inputs)), inputs, [row for told in inputs for row in told.rows])


def add_join(draw: st.DrawFn, built: Built) -> None:
    left, right = draw(st.sampled_from(built.told)), draw(st.sampled_from(built.told))
    pairs = [
        (a, b) for a in left.others for b in right.others if left.schema.type_of(a) == right.schema.type_of(b)
    ]
    keys = (
        draw(st.lists(st.sampled_from(pairs), max_size=2, unique_by=(lambda p: p[0], lambda p: p[1])))
        if pairs
        else []
    )
    before, length = draw(st.integers(-2, 4)), draw(st.integers(2, 6))
    bands: list[tuple[Band | TumblingBand, joins.Times]] = [
        (Band(before, length), joins.band(before, length)),
        (TumblingBand(length, 2), joins.tumbling(length, 2)),
    ]
    band, times = draw(st.sampled_from(bands))
    suffix, both = f"_{len(built.told)}", [left.schema.names, right.schema.names]
    kind = draw(st.sampled_from(["inner", "left", "semi", "anti"] + ["full"] * ("time" not in both[0])))
    said = (
        draw(st.sampled_from(["individual", "joint", "both"]))
        if kind not in ("semi", "anti")
        else "individual"
    )
    join = OAJoin(keys, band, punctuation=said, suffix=suffix, how=kind)
    on = left.schema.progressing, right.schema.progressing
    rows = joins.joined(
        kind, left.rows, right.rows, keys, times, names=(both[0], both[1]), on=on, suffix=suffix
    )
    built.add(join, [left, right], rows)


def add_aggregate(draw: st.DrawFn, built: Built) -> None:
    told = draw(st.sampled_from(built.told))
    time = told.schema.progressing
    by = groups(draw, told)
    range_, slide, origin = draw(LENGTHS)
    kind, column = draw(st.sampled_from(sorted(AGGREGATES))), draw(st.sampled_from(told.numbers))
    count, value = f"count{len(built.told)}", f"{kind}{len(built.told)}"
    functions = {count: windows.aggregate("count", time=time), value: windows.aggregate(kind, column, time)}
    aggregates = {count: Count(), value: AGGREGATES[kind](column)}
    rows = windows.sliding(told.rows, time, by, functions, range_, slide, origin)
    built.add(WindowAggregate(Sliding(range_, slide, origin), aggregates, by), [told], rows)


def add_sliced(draw: st.DrawFn, built: Built) -> None:
    told = draw(st.sampled_from(built.told))
    time, by = told.schema.progressing, groups(draw, told)
    definitions = draw(st.dictionaries(st.sampled_from("xyz"), LENGTHS, min_size=1, max_size=3))
    column, value = draw(st.sampled_from(told.numbers)), f"sum{len(built.told)}"
    rows = many(told.rows, time, by, {value: windows.aggregate("sum", column, time)}, definitions)
    of = {name: Sliding(*lengths) for name, lengths in definitions.items()}
    built.add(WindowAggregate(of, {value: Sum(column)}, by), [told], rows)


def groups(draw: st.DrawFn, told: Told) -> tuple[str, ...]:
    free = [n for n in told.others if n not in WINDOW]
    return tuple(draw(st.lists(st.sampled_from(free), max_size=2, unique=True))) if free else ()


STEPS = [
    add_select, add_split, add_project, add_apply, add_distinct,
    add_meld, add_meld, add_join, add_join, add_aggregate, add_aggregate, add_aggregate, add_sliced,
]  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> Built:
    built = Built(Graph("random"), {}, [])
    for _ in range(draw(st.integers(1, 3))):
        add_source(draw, built)
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=6)):
        before = len(built.told)
        step(draw, built)
        if any(len(told.rows) > MOST_ROWS for told in built.told[before:]):
            break
    used = {stream for node in built.graph.nodes.values() for stream in node.inputs}
    built.told = [told for told in built.told if told.stream not in used]
    for number, told in enumerate(built.told):
        built.graph.sink(f"sink{number}", told.stream)
    return built


def pages(feed: list[tuple[int, Row]], size: int) -> list[Page]:
    parts = [feed[start : start + size] for start in range(0, len(feed), size)]
    return [
        Page.of(SCHEMA, {n: [row[n] for _, row in part] for n in SCHEMA.names}, [now for now, _ in part])
        for part in parts
    ]


def results(built: Built, graph: Graph, *, on: Any, cut: int) -> list[Any]:
    feeds = {name: pages(feed, cut) for name, feed in built.feeds.items()}
    outcome = replay(graph, feeds, on=on, check=True)
    assert outcome.statistics.count("late") == 0
    assert outcome.statistics.state.tuples == outcome.statistics.state.partials == 0
    return [multiset(outcome.results[f"sink{i}"].to_pylist()) for i in range(len(built.told))]


@settings(max_examples=80)
@given(graphs(), st.integers(1, 13))
def test_every_way_to_run_a_graph_gives_what_the_definitions_say(built: Built, cut: int) -> None:
    expected = [multiset(told.rows) for told in built.told]
    assert results(built, built.graph, on="inline", cut=cut) == expected
    assert results(built, built.graph, on="inline", cut=1) == expected
    assert results(built, built.graph, on="local", cut=cut) == expected
    assert results(built, prune_punctuation(built.graph), on="inline", cut=cut) == expected
    assert results(built, pruned(built.graph), on="inline", cut=cut) == expected
    twins = [in_order(built.graph, join="input"), *(in_order(built.graph, windows=how) for how in WINDOWING)]
    for twin in twins:
        assert results(built, twin, on="inline", cut=cut) == expected
