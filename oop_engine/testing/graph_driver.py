"""GraphDriver: a whole graph, fed by hand; the rows of each sink are taken or expected step by step.

Time is virtual and only the test moves it, so a test of a heartbeat or of a lull does not wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from oop_engine.core.change import Change
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.groups.in_python import values_of
from oop_engine.core.operator import Message, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Punctuation
from oop_engine.core.schema import Schema
from oop_engine.runners.dispatch import Result
from oop_engine.runners.feeds.forms import Intake
from oop_engine.runners.inline import Inline
from oop_engine.testing.case import Row, typed
from oop_engine.testing.driver import Driver, multiset

if TYPE_CHECKING:  # it needs Hypothesis
    from oop_engine.testing.streams import Script

__all__ = ["GraphDriver", "pushed_by_row"]


class GraphDriver:
    """Runs ``graph`` as it is fed: after each call all that follows from it has happened.

    ``check``: check every edge against its bounds, as a test should.  The rows of a sink stay until they are
    taken (``rows``, ``punctuation``, ``expect``).

    >>> import pyarrow as pa
    >>> from oop_engine.operators import Count, Ordered, Punctuate, Tumbling, WindowAggregate
    >>> schema = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
    >>> graph = Graph("requests")
    >>> edge = graph.add("edge", Punctuate(Ordered(), "1 min"), graph.source("in", schema))
    >>> count = WindowAggregate(Tumbling("1 min"), {"n": Count()}, by=("k",))
    >>> graph.sink("out", graph.add("count", count, edge))
    >>> driver = GraphDriver(graph)
    >>> driver.feed("in", [{"ts": 5, "k": "a"}, {"ts": 50, "k": "a"}])
    >>> driver.rows("out")
    []
    >>> driver.feed("in", [{"ts": 61, "k": "b"}])
    >>> driver.expect("out", [{"window_start": 0, "window_end": 60, "k": "a", "n": 2}])
    >>> driver.end()
    >>> [row["k"] for row in driver.rows("out")]
    ['b']
    """

    def __init__(self, graph: Graph, *, check: bool = True) -> None:
        self._graph, self._check = graph, check
        self._out: dict[str, list[Message]] = {node.name: [] for node in graph.plan().of_kind("sink")}
        self._open = [node.name for node in graph.plan().of_kind("source")]
        self._schema = {n.name: n.schema for n in graph.plan().of_kind("source") if n.schema is not None}
        self._inline = self._opened()

    def feed(self, source: str, message: Any, now: int | None = None) -> None:
        """Send a message, or rows in any form that ``run`` takes; ``now``: the arrival of all of it.

        Raises ``UsageError`` if there is no such source or it has ended, ``ContractError`` if the tuples do not
        fit its schema.
        """
        if isinstance(message, Page | Punctuation | Change) or source not in self._schema:
            self._inline.push(source, message, now)
        else:
            intake = Intake(f"GraphDriver: source {source!r}", self._schema[source], "feed")
            for made in intake.messages(message):
                timed = isinstance(made, Page) and made.arrival is None and now is not None
                self._inline.push(source, _arrived(made, now) if timed else made, now)
        self._inline.drain()

    def clock(self, now: int) -> None:
        """Set the arrival clock to ``now``, in the unit of the progressing attribute."""
        self._inline.clock(now)
        self._inline.drain()

    def end(self, source: str | None = None) -> None:
        """End a source; None: all that are open."""
        for name in [source] if source is not None else list(self._open):
            self._inline.end(name)
            self._open.remove(name)
        self._inline.drain()

    def rows(self, sink: str) -> list[Row]:
        """Take the tuples that came to ``sink`` since they were last taken, in order."""
        pages = self._take(sink, Page)
        return [row for page in pages for row in page.to_pylist()]

    def punctuation(self, sink: str) -> list[Punctuation]:
        """Take the punctuation that came to ``sink`` since it was last taken."""
        return self._take(sink, Punctuation)

    def expect(self, sink: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take the tuples of ``sink``; raise ``AssertionError`` unless they are ``rows``, in any order."""
        got, wanted = multiset(self.rows(sink)), multiset(map(dict, rows))
        if got != wanted:
            missing, extra = ([dict(row) for row in rest.elements()] for rest in (wanted - got, got - wanted))
            msg = f"sink {sink!r}: missing {missing}, not expected {extra}"
            raise AssertionError(msg)

    def state(self) -> State:
        """Return the state that the whole graph holds now."""
        return self._inline.statistics.state

    def counts(self, operator: str) -> dict[str, int]:
        """Return the counts of an operator so far, such as its late tuples."""
        return self._inline.operators[self._known("operator", operator, self._inline.operators)].counts()

    def move(self) -> None:
        """Snapshot the graph, throw it away, and restore it elsewhere: nothing may change by that."""
        states = self._inline.snapshot()
        self._inline = self._opened()
        self._inline.restore(states)

    def _opened(self) -> Inline:
        return Inline(self._graph, self._keep, check=self._check)

    def _keep(self, result: Result) -> None:
        self._out[result.sink].append(result.message)

    def _take(self, sink: str, kind: Any) -> list[Any]:
        self._known("sink", sink, self._out)
        taken = [message for message in self._out[sink] if isinstance(message, kind)]
        self._out[sink] = [message for message in self._out[sink] if not isinstance(message, kind)]
        return taken

    def _known(self, kind: str, name: str, names: Iterable[str]) -> str:
        if name not in (names := list(names)):
            msg = f"GraphDriver: graph {self._graph.name!r} has no {kind} {name!r}; there are {', '.join(names)}"
            msg += did_you_mean(name, names)
            raise UsageError(msg)
        return name


def pushed_by_row(operator: Operator, inputs: Sequence[Schema], script: Script) -> Driver:
    """Return the output of a graph of ``operator`` where rows are pushed one by one, and wait up to a page cut."""
    graph, driver = Graph("rows"), Driver(operator, *inputs)
    sources = [graph.source(f"in-{port}", schema) for port, schema in enumerate(inputs)]
    node = graph.add("node", operator, *sources)
    for name in operator.outputs:
        graph.sink(f"out-{name}", node[name])
    out = {f"out-{name}": driver.out[port] for port, name in enumerate(operator.outputs)}
    runner = Inline(graph, lambda result: out[result.sink].append(result.message))
    clock = count()
    for event in script:
        if isinstance(event.content, dict):
            runner.push_row(f"in-{event.port}", _typed(inputs[event.port], event.content), next(clock))
        elif event.content is not None:
            runner.push(f"in-{event.port}", event.content)
        else:
            runner.drain()
    for source in sources:
        runner.end(source.node)
    runner.drain()
    return driver


def _arrived(page: Any, now: int | None) -> Page:
    return Page(page.schema, page.batch, np.full(len(page), now))


def _typed(schema: Schema, row: Row) -> Row:
    return {name: _value_of(typed([value], schema.type_of(name))) for name, value in row.items()}


def _value_of(column: Any) -> Any:
    """Return the only value of a column."""
    return column[0] if isinstance(column, list) else values_of(column)[0]
