"""A graph in which punctuation that no operator can use is dropped where it is made.

    Punctuate  ->  Punctuate, PrunePunctuation    where it makes kinds, or bounds, that nobody behind it can use
    OAJoin     ->  OAJoin, PrunePunctuation       the same

Operators answer which they can use (``Operator.wants``): a window aggregate bounds at the ends of its windows, and
group-wise punctuation on columns of ``by``; a join that on its keys; one that passes tuples on as much as those behind
it.  The answers go from the sinks to the sources.  Results are the same, and so are late tuples: a coarser granularity
of ``Punctuate`` itself would let tuples through that are late without it, so bounds are rounded behind it.

Source: thesis 8.1: operators describe the punctuation that they can use, after Tucker's Describe.
"""

from __future__ import annotations

from oop_engine.core.graphs.graph import Graph, Node, Plan, Stream
from oop_engine.core.operator import Operator
from oop_engine.core.punctuation import Wants
from oop_engine.core.schema import Schema
from oop_engine.operators.edge.prune_punctuation import PrunePunctuation
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import PerGroup
from oop_engine.operators.policies.running_bound import length_of

__all__ = ["prune_punctuation"]

_SINK = Wants(1)


def prune_punctuation(graph: Graph) -> Graph:
    """Return ``graph`` with a ``PrunePunctuation`` behind each generator and join with punctuation of no use.

    The node behind ``x`` is ``x-pruned``.  A sink counts as one that can use linear punctuation alone.  The graph
    itself is left as it is.  Raises ``GraphError`` if it is not complete, or has a node of such a name.  O(nodes).

    >>> import pyarrow as pa
    >>> from oop_engine import Schema
    >>> from oop_engine.operators import Count, Ordered, Tumbling, WindowAggregate
    >>> graph = Graph("per minute")
    >>> edge = graph.add("edge", Punctuate(Ordered()), graph.source("in", Schema({"ts": pa.int64()}, "ts", "s")))
    >>> graph.sink("out", graph.add("count", WindowAggregate(Tumbling("1 min"), {"n": Count()}), edge))
    >>> prune_punctuation(graph).nodes["edge-pruned"].operator.describe()
    'PrunePunctuation(linear, joint at 60)'
    """
    plan = graph.plan()
    wanted, twin, moved = _wanted(plan), Graph(f"{graph.name} (pruned)"), dict[Stream, Stream]()
    for node in plan.nodes:
        inputs = [
            moved.get(stream, stream) for stream in (plan.input(node, i) for i in range(len(node.inputs)))
        ]
        if node.schema is not None:
            twin.source(node.name, node.schema)
        elif node.operator is None:
            twin.sink(node.name, *inputs)
        else:
            twin.add(node.name, node.operator, *inputs)
            out = Stream(node.name, node.ports[0])
            if _drops(node.operator, wanted[out], plan, node):
                prune = _pruning(wanted[out], plan.schema(out))
                moved[out] = twin.add(f"{node.name}-pruned", prune, out)
    return twin


def _wanted(plan: Plan) -> dict[Stream, Wants]:
    """Return the punctuation of each stream that is of use."""
    wanted: dict[Stream, list[Wants]] = {stream: [] for stream in plan.schemas}
    for node in reversed(plan.nodes):
        answers: tuple[Wants, ...] = (_SINK,) * len(node.inputs)
        if node.operator is not None:
            downstream = Wants.all_of(
                wants for port in node.ports for wants in wanted[Stream(node.name, port)]
            )
            answers = node.operator.wants(plan.inputs(node.name), downstream)
        for port, answer in enumerate(answers):
            wanted[plan.input(node, port)].append(answer)
    return {stream: Wants.all_of(answers) for stream, answers in wanted.items()}


def _drops(operator: Operator, wanted: Wants, plan: Plan, node: Node) -> bool:
    """Return whether some of the punctuation that an operator makes is of no use."""
    match operator:
        case Punctuate(policy=PerGroup(by=by)) if wanted.groups is not None and not set(by) <= wanted.groups:
            return True
        case Punctuate(granularity=granularity, watermark=watermark):
            if watermark is not None and not wanted.watermarks:
                return True
            [schema] = plan.inputs(node.name)
            every = 1 if granularity is None else length_of(granularity, schema, "prune_punctuation", least=1)
            return wanted.granularity == 0 or every % wanted.granularity != 0
        case OAJoin(terms=terms):
            keys = {key[0] for key in terms.keys}
            by_key = bool(keys) and wanted.groups is not None and not keys <= wanted.groups
            return by_key or wanted.granularity != 1
    return False


def _pruning(wanted: Wants, schema: Schema) -> PrunePunctuation:
    kinds = {
        "linear": True, "groups": wanted.groups != frozenset(), "joint": wanted.joint,
        "watermarks": wanted.watermarks,
    }  # fmt: skip
    known = None if not wanted.groups else [name for name in schema.names if name in wanted.groups]
    keep = [kind for kind, is_wanted in kinds.items() if is_wanted]
    return PrunePunctuation(wanted.granularity if wanted.granularity > 1 else None, keep, known)
