"""Recording: the events of a run, moment by moment, for a picture of it.

Of the tuples only two integers stay, their time and their arrival, and of at most a million tuples; of a
longer run the beginning is recorded.  Nothing of it changes the run or its figures.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.graphs.graph import Node, Plan, Stream
from oop_engine.core.groups.in_python import values_of
from oop_engine.core.operator import Message, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Linear

__all__ = ["Recording"]

Integers = NDArray[np.int64]
_TUPLES = 1 << 20
_EVENTS = 1 << 20
_GROUPS = 512  # of which the middle is looked for
_FAR = 2**61  # beyond it are sentinels


class Recording:
    """A ``Watch`` of a graph with the plan ``plan``, of its first ``tuples`` tuples.

    Bounds are those at the operator that makes windows out of times (without one: the sink), for
    they close windows.  ``whole``: nothing was left out.
    """

    def __init__(self, plan: Plan, tuples: int = _TUPLES) -> None:
        edges = {n.name for n in plan.nodes if n.operator is not None and n.operator.makes_progress}
        first: dict[Stream, str] = {}
        for stream, node, _ in plan.edges():
            if node in edges or (not edges and plan.node(stream.node).schema):
                first.setdefault(_whole(plan, stream), node)  # a stream may lead to several
        self._readers = set(first.items())
        self._guarded = bool(edges)
        self._heard = _deciding(plan)
        self._left, self._latest = tuples, -_FAR
        self._came: list[tuple[Integers, Integers]] = []
        self._entered: dict[tuple[Stream, str], list[Integers]] = {}
        self._ports = {name: plan.node(name).ports[0] for name in edges}
        self._linear, self._middle, self._states = array("q"), array("q"), array("q")
        self._groups: dict[tuple[object, ...], int] = {}
        self.whole = True

    def passed(self, stream: Stream, node: str, message: Message, now: int) -> None:
        """Note a message."""
        if isinstance(message, Page):
            if (stream, node) in self._readers and message.arrival is not None:
                self._come(message.times, message.arrival)
            if self._ports.get(stream.node) == stream.port and len(message):
                self._enter(stream, node, message.times)
        elif (stream, node) == self._heard:
            self._punctuated(message, now)

    def kept(self, now: int, state: State) -> None:
        """Note a state, if it is another one."""
        new = (now, state.tuples, state.partials, state.nbytes)
        if abs(now) < _FAR and tuple(self._states[-3:]) != new[1:]:
            if len(self._states) < 4 * _EVENTS:
                self._states.extend(new)
            else:
                self.whole = False

    @property
    def times(self) -> Integers:
        """The times of the tuples, in order of arrival."""
        return self._sorted()[0]

    @property
    def arrivals(self) -> Integers:
        """The arrivals of the tuples, never decreasing."""
        return self._sorted()[1]

    @property
    def bounds(self) -> Integers:
        """Moments and bounds of the whole stream, int64 (punctuations, 2)."""
        return np.array(self._linear, np.int64).reshape(-1, 2)

    @property
    def middle(self) -> Integers:
        """Moments when half of the groups passed a bound, and the bounds, int64 (punctuations, 2)."""
        return np.array(self._middle, np.int64).reshape(-1, 2)

    @property
    def states(self) -> Integers:
        """The state over time, int64 (events, 4): moment, tuples, partial aggregates, bytes."""
        return np.array(self._states, np.int64).reshape(-1, 4)

    def late(self) -> Integers:
        """Return the rows of the tuples that came to ``Punctuate`` and did not pass it.

        Of equal times those that came last are the late ones, for bounds only grow.  O(tuples log tuples).
        """
        if not self._guarded or not self._came:
            return np.empty(0, np.int64)
        first: dict[Stream, list[Integers]] = {}
        for (stream, _), times in self._entered.items():
            first.setdefault(stream, times)  # a stream may lead to several
        entered = np.sort(np.concatenate([np.empty(0, np.int64), *(t for ts in first.values() for t in ts)]))
        order = np.argsort(self.times, kind="stable")
        sorted_ = self.times[order]
        rank = np.arange(order.size) - np.searchsorted(sorted_, sorted_)
        let_in = np.searchsorted(entered, sorted_, "right") - np.searchsorted(entered, sorted_)
        return np.sort(order[rank >= let_in])

    def _sorted(self) -> tuple[Integers, Integers]:
        none = np.empty(0, np.int64)
        times = np.concatenate([none, *(times for times, _ in self._came)])
        arrivals = np.concatenate([none, *(arrivals for _, arrivals in self._came)])
        order = np.argsort(arrivals, kind="stable")
        return times[order], arrivals[order]

    def _come(self, times: Integers, arrivals: Integers) -> None:
        if self._left < times.size:
            self.whole = False
        if self._left > 0 and times.size:
            self._came.append((times[: self._left].copy(), arrivals[: self._left].copy()))
            self._left -= times.size
            self._latest = max(self._latest, int(times.max()))

    def _enter(self, stream: Stream, node: str, times: Integers) -> None:
        known = times if self._left > 0 else times[times <= self._latest]
        self._entered.setdefault((stream, node), []).append(known.copy())

    def _punctuated(self, message: Message, now: int) -> None:
        match message:
            case Linear(below) if abs(now) < _FAR:
                if abs(below) < _FAR and len(self._linear) < 2 * _EVENTS:
                    self._linear.extend((now, below))
            case GroupWise(groups, below) if len(groups) + len(self._groups) <= _GROUPS and abs(now) < _FAR:
                keys = zip(*map(values_of, groups.columns), strict=True)
                self._groups.update(zip(keys, below.tolist(), strict=True))
                linear = self._linear[-1] if self._linear else -_FAR
                middle = sorted(self._groups.values())[len(self._groups) // 2]
                if abs(middle := max(middle, linear)) < _FAR and len(self._middle) < 2 * _EVENTS:
                    self._middle.extend((now, middle))
            case _:
                return


def _deciding(plan: Plan) -> tuple[Stream, str]:
    """Return the edge whose bounds close windows: before the last operator that gives times a new meaning."""
    node = sink = plan.of_kind("sink")[0]
    while node.inputs:
        before = plan.node(node.inputs[0].node)
        if (
            before.inputs
            and plan.schema(before.inputs[0]).progressing != plan.schema(node.inputs[0]).progressing
        ):
            return _edge(plan, before)
        node = before
    return _edge(plan, sink)


def _edge(plan: Plan, node: Node) -> tuple[Stream, str]:
    return _whole(plan, node.inputs[0]), node.name


def _whole(plan: Plan, stream: Stream) -> Stream:
    """Return the stream with the name of its port."""
    return Stream(stream.node, stream.port or plan.node(stream.node).ports[0])
