"""A graph of one's own, and feeds, as a scenario: the graph and its in-order twin over the same feeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oop_engine.core.close_names import closest_or_all, renamed
from oop_engine.core.errors import GraphError, UsageError
from oop_engine.core.graphs.graph import Graph, Plan, Stream
from oop_engine.core.graphs.waiting import waiting
from oop_engine.lab.answers import missing_and_wrong
from oop_engine.lab.own.small_pages import SmallPages
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim, Scenario, Variant
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import Upstream
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate

__all__ = ["scenario_of"]

_TWIN = "the graph has an in-order twin"


def scenario_of(
    graph: Graph,
    feeds: Mapping[str, Any],
    *,
    sink: str | None = None,
    keys: Sequence[str] = (),
    name: str = "",
) -> Scenario:
    """Return ``graph``, and its in-order twins, over ``feeds`` as a scenario without parameters.

    ``feeds``: for each source a trace, or another form that ``run`` takes; iterators are read into memory, since each
    plan reads them.  Rows without an arrival arrive in their order, each when the largest time so far was there.
    The first 2,000 rows of a source come one by one, the rest in pages that end where a result comes: for that the
    plans run twice more (``lab/own/small_pages.py``).  A claim on longer feeds states whether delays are exact.
    A source that no ``Punctuate`` follows is sorted in order by the punctuation of its feed, or at its end.
    ``sink``: the sink whose results are compared; default: the first.  ``keys``: the columns that
    identify a result; default: all but those that aggregates compute.  ``name``: of the scenario.
    Raises ``UsageError`` for feeds of other sources, another sink, and keys that the sink lacks.  O(nodes).
    """
    plan = graph.plan()
    chosen = _sink(plan, sink)
    single = _of_sink(graph, plan, chosen)
    given = _kept(single.plan(), feeds)
    schema = single.plan().schema(single.plan().of_kind("sink")[0].inputs[0])
    schema.require(keys, f"compare: keys of sink {chosen!r}")
    reason = ""
    try:
        variants = _twins(single)
    except GraphError as error:
        variants, reason = [], str(error)
    variants.append(Variant("as written", "out", single))

    key_columns = tuple(keys) or _keys(single.plan(), list(schema.plain().names))
    pages = SmallPages(single.plan(), given, [variant.graph for variant in variants], key_columns)

    def claims(runs: list[Run]) -> list[Claim]:
        equal = Claim(_TWIN, None, {"not checked": reason}) if reason else _equal(runs, key_columns)
        return [equal, *pages.claims(runs)]

    return Scenario(
        name or graph.name,
        f"{name or graph.name}: {chosen}",
        f"The results of the sink `{chosen}` of the graph `{graph.name}`, as written and in order.",
        lambda _: pages.messages(),
        lambda _: variants,
        key_columns,
        claims=claims,
        drops_late=True,
    )


def _twins(graph: Graph) -> list[Variant]:
    """Return the in-order twin, and the plans that aggregate at once, or before a merge, where these are others."""
    graph = _sortable(graph)
    plans = {
        "its in-order twin": in_order(graph),
        "in order, aggregated at once": in_order(graph, windows="reduce"),
        "in order, aggregated before the merge": in_order(graph, windows="early"),
    }
    different = {plan.text(): name for name, plan in reversed(plans.items())}  # of equal ones the first
    return [Variant(name, "in", plan) for name, plan in plans.items() if different[plan.text()] == name]


def _sortable(graph: Graph) -> Graph:
    """Return a graph in which sources without a policy have that of their feeds, so that its twin sorts them too."""
    plan, same = graph.plan(), Graph(graph.name)
    bare, moved = waiting(plan), dict[Stream, Stream]()
    for node in plan.nodes:
        if node.schema is not None:
            stream = same.source(node.name, node.schema)
            if node.name in bare:
                moved[stream] = same.add(f"{node.name}-order", Punctuate(Upstream()), stream)
        elif node.operator is None:
            same.sink(node.name, moved.get(node.inputs[0], node.inputs[0]))
        else:
            raw = isinstance(node.operator, Punctuate)
            same.add(
                node.name,
                node.operator,
                *(stream if raw else moved.get(stream, stream) for stream in node.inputs),
            )
    return same


def _sink(plan: Plan, sink: str | None) -> str:
    names = [node.name for node in plan.of_kind("sink")]
    if sink is None:
        return names[0]
    if sink not in names:
        msg = f"graph {plan.name!r} has no sink {sink!r}{closest_or_all(sink, names)}"
        raise UsageError(msg)
    return sink


def _of_sink(graph: Graph, plan: Plan, sink: str) -> Graph:
    """Return the part of a graph that leads to a sink."""
    wanted = {sink}
    for node in reversed(plan.nodes):
        if node.name in wanted:
            wanted |= {stream.node for stream in node.inputs}
    part = Graph(graph.name)
    for node in plan.nodes:
        if node.name not in wanted:
            continue
        if node.schema is not None:
            part.source(node.name, node.schema)
        elif node.operator is None:
            part.sink(node.name, node.inputs[0])
        else:
            part.add(node.name, node.operator, *node.inputs)
    return part


def _kept(plan: Plan, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Return the feeds of a plan, each of which can be read several times."""
    names = [node.name for node in plan.of_kind("source")]
    if lacking := [name for name in names if name not in feeds]:
        msg = f"graph {plan.name!r} has the sources {', '.join(names)}; got no feed for {', '.join(lacking)}"
        msg += renamed(feeds, names)
        raise UsageError(msg)
    return {name: list(feed) if isinstance(feed := feeds[name], Iterator) else feed for name in names}


def _equal(runs: list[Run], keys: tuple[str, ...]) -> Claim:
    *ordered, free = runs
    differences = [missing_and_wrong(free.table, run.table, keys) for run in ordered]
    missing, wrong = map(sum, zip(*differences, strict=True))
    figures = {"results": free.results, "missing": missing, "wrong": wrong}
    return Claim("in order and out of order give the same results", not missing and not wrong, figures)


def _keys(plan: Plan, names: list[str]) -> tuple[str, ...]:
    """Return the columns that identify a result: those that the last aggregate does not compute."""
    computed: set[str] = set()
    for node in plan.nodes:
        if isinstance(node.operator, WindowAggregate):
            computed |= {*node.operator.aggregates}
    return tuple(name for name in names if name not in computed) or tuple(names)
