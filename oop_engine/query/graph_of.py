"""A query becomes a graph: equal steps are one node, and each has a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pyarrow.compute as pc

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.fingerprint import fingerprint
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.graphs.stream import Stream
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.meld import Meld
from oop_engine.operators.policies.late import Late
from oop_engine.operators.filter import Filter
from oop_engine.query.event_time import EventTime
from oop_engine.query.feeds import disorder_of
from oop_engine.query.shared import SharedAggregate, windows_of
from oop_engine.query.step import QueryStep, StepOutput, steps_of

__all__ = ["Built", "built"]

_LATE = 1  # the port of late records


@dataclass
class Built:
    """A graph, the feeds of its sources, and why the state of a node may have no end."""

    graph: Graph
    feeds: dict[str, Any] = field(default_factory=dict)
    unbounded: dict[str, str] = field(default_factory=dict)


def built(
    name: str,
    results: Mapping[str, StepOutput],
    feeds: Mapping[str, Any] = MappingProxyType({}),
    *,
    measure: bool = True,
) -> Built:
    """Return the graph of some results, a sink each, over ``feeds`` or those that its sources have.

    Without ``measure`` no feed is read, and a disorder that is not given is an error.  Raises ``UsageError`` if two
    nodes must have one name, if a feed is for no source, and if the disorder of a source is neither given nor can be
    measured.
    """
    return _Builder(name, results, feeds, measure=measure).built


class _Builder:
    """Nodes in the order in which results need them."""

    def __init__(
        self, name: str, results: Mapping[str, StepOutput], feeds: Mapping[str, Any], *, measure: bool
    ) -> None:
        self.built = Built(Graph(name))
        self._feeds, self._measures = feeds, measure
        self._nodes: dict[Any, Stream] = {}
        self._given: dict[Any, str] = {}
        self._keys: dict[int, Any] = {}
        self._windows: dict[int, Any] = {}
        self._diverted: set[Any] = set()
        self._in_time: set[Any] = set()
        self._shared: dict[Any, SharedAggregate] = {}
        self._members: dict[Any, set[Any]] = {}
        for output in results.values():
            self._look(output)
        self._taken = {*results, *self._given.values()}
        for sink, output in results.items():
            self.built.graph.sink(sink, self._stream(output))
        self._check_feeds()

    def _check_feeds(self) -> None:
        for name in self._feeds:
            if name not in self.built.feeds:
                there = f"the sources are {', '.join(self.built.feeds)}{did_you_mean(name, self.built.feeds)}"
                msg = f"query {self.built.graph.name!r}: there is no source {name!r}; {there}"
                raise UsageError(msg)

    def _look(self, output: StepOutput) -> None:
        """Find the names that were given, and the outputs of late records that are read."""
        for step, port in steps_of(output):
            key = self._key(step)
            if step.name is not None:
                self._given[key] = step.name
            if (windows := self._windows_of(step)) is not None:
                self._share((windows, key[1]), key, step.operator)
            if isinstance(step.operator, Punctuate):
                (self._diverted if port == _LATE else self._in_time).add(key)

    def _share(self, shared_by: Any, key: Any, made: Any) -> None:
        """Take an aggregate, once for equal steps."""
        members = self._members.setdefault(shared_by, set())
        if key not in members:
            members.add(key)
            self._shared.setdefault(shared_by, SharedAggregate(made)).add(made)

    def _windows_of(self, step: QueryStep) -> Any:
        """Return ``windows_of`` a step, computed once."""
        if id(step) not in self._windows:
            self._windows[id(step)] = windows_of(step)
        return self._windows[id(step)]

    def _key(self, step: QueryStep) -> Any:
        """Return a key that is equal for equal steps."""
        if (key := self._keys.get(id(step))) is None:
            made = step.operator
            own = (step.hint, str(step.schemas)) if made is None else (type(made), fingerprint(made))
            key = self._keys[id(step)] = (own, tuple((self._key(i.step), i.port) for i in step.inputs))
        return key

    def _stream(self, output: StepOutput) -> Stream:
        step, key = output.step, self._key(output.step)
        if key not in self._nodes:
            self._nodes[key] = self._added(step, key)
        stream = self._nodes[key]
        if output.port == 0:
            return stream
        output_stream = stream[stream.ports[output.port]]
        return (
            output_stream if key in self._in_time else self._alone(output_stream, stream, (key, output.port))
        )

    def _alone(self, late: Stream, in_time: Stream, key: Any) -> Stream:
        """Return late records where those in time are read by nothing: each output of a node leads somewhere."""
        if key not in self._nodes:
            nothing = self.built.graph.add(self._free("in-time"), Filter(pc.scalar(value=False)), in_time)
            self._nodes[key] = self.built.graph.add(self._free("late"), Meld(2), late, nothing)
        return self._nodes[key]

    def _added(self, step: QueryStep, key: Any) -> Stream:
        inputs = [self._stream(stream) for stream in step.inputs]
        shared_by = (self._windows_of(step), key[1])
        if len(self._members.get(shared_by, ())) > 1:
            return self._part(step, shared_by, inputs)
        name, graph = self._name(step, key), self.built.graph
        if name in graph.nodes:
            msg = f"query {graph.name!r}: two steps are called {name!r}: give them different names, .named('...')"
            raise UsageError(msg)
        if step.unbounded is not None:
            self.built.unbounded[name] = step.unbounded
        if step.operator is None:
            self.built.feeds[name] = self._feeds.get(name, step.feed)
            return graph.source(name, step.schemas[0])
        made = step.operator if step.measure is None else self._measured(step, step.measure)
        if key in self._diverted:
            assert isinstance(made, Punctuate)
            made = Punctuate(made.policy, made.granularity, Late.DIVERT, watermark=made.watermark)
        return graph.add(name, made, *inputs)

    def _part(self, step: QueryStep, shared_by: Any, inputs: list[Stream]) -> Stream:
        """Return the results of one aggregate of several with equal windows."""
        shared, graph = self._shared[shared_by], self.built.graph
        if shared_by not in self._nodes:
            name = self._free(step.hint)
            if step.unbounded is not None:
                self.built.unbounded[name] = step.unbounded
            self._nodes[shared_by] = graph.add(name, shared.operator, *inputs)
        return graph.add(self._free("columns"), shared.results_of(step), self._nodes[shared_by])

    def _measured(self, step: QueryStep, event_time: EventTime) -> Punctuate:
        """Return the operator of a source whose disorder is that of its feed."""
        [source] = step.inputs
        name = str(source.step.name)
        feed = self.built.feeds[name] if self._measures else None
        return event_time.punctuate(disorder_of(feed, source.schema, event_time.per, name))

    def _name(self, step: QueryStep, key: Any) -> str:
        if key in self._given:
            return self._given[key]
        return self._free(step.hint)

    def _free(self, hint: str) -> str:
        """Return a name for a node that no other has."""
        name, number = hint, 1
        while name in self._taken:
            number += 1
            name = f"{hint}-{number}"
        self._taken.add(name)
        return name
