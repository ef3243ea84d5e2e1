"""States: a running graph as bytes, an entry an operator, and one of the runner itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from oop_engine.core.errors import SnapshotError
from oop_engine.core.operator import Operator
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import frozen, pack, unpack

__all__ = ["RUNNER", "captured", "restore", "snapshot"]

RUNNER = ""
"""The name of the runner's entry: no node has an empty one."""


def snapshot(runner: str, operators: Mapping[str, Operator], own: dict[str, Any]) -> dict[str, bytes]:
    """Return the state of every operator, and ``own`` of the ``runner`` (the name of its class).  O(bytes)."""
    states = {name: _packed(name, op, _whole(name, op)) for name, op in operators.items()}
    return states | {RUNNER: pack(runner, own)}


def captured(
    runner: str, operators: Mapping[str, Operator], own: dict[str, Any]
) -> dict[str, Callable[[], bytes]]:
    """Return functions that pack the entries of ``snapshot``, on any thread, while the graph goes on.

    O(bytes) to copy them; the rest is left to the functions.
    """
    found: dict[str, Callable[[], bytes]] = {
        name: partial(_packed, name, op, frozen(_whole(name, op))) for name, op in operators.items()
    }
    return found | {RUNNER: partial(pack, runner, frozen(own))}


def _whole(node: str, operator: Operator) -> dict[str, Any]:
    """Return the state of an operator; raises ``SnapshotError`` if it keeps one that a restart would not bring back."""
    kind, state = type(operator), operator.state()
    place = f"operator {node!r} ({kind.__name__})"
    if kind.save is Operator.save and (state.tuples or state.partials or state.groups):
        msg = f"{place}: keeps a state, {state}, and saves none, so a restart would lose it: write save and load"
        raise SnapshotError(msg)
    whole = operator.whole()
    given: object = whole
    if not isinstance(given, dict):
        msg = f"{place}: save must return a dictionary of the parts of its state; got {given!r:.80}"
        raise SnapshotError(msg)
    if kind.load is Operator.load and whole:
        msg = f"{place}: saves {', '.join(map(str, whole))}, and loads nothing, so a restart would lose it: write load"
        raise SnapshotError(msg)
    return whole


def _packed(node: str, operator: Operator, state: dict[str, Any]) -> bytes:
    kind = type(operator)
    try:
        return pack(kind.__name__, state, operator.state_version)
    except (SnapshotError, TypeError, ValueError, OverflowError) as error:
        msg = f"operator {node!r} ({kind.__name__}): its state cannot be saved: {error}"
        raise SnapshotError(msg) from error


def restore(
    graph: str,
    runner: str,
    operators: Mapping[str, Operator],
    states: Mapping[str, bytes],
    load: Callable[[Saved], None],
    fresh: Collection[str] = (),
) -> None:
    """Give operators their states, and ``load`` that of the runner; the ``fresh`` ones stay as they were opened.

    Raises ``SnapshotError`` if they are of another graph, or damaged; all operators are then as they were opened.
    """
    try:
        restored = {name: operator for name, operator in operators.items() if name not in fresh}
        if missing := {*restored, RUNNER} - states.keys():
            msg = f"graph {graph!r}: a snapshot must have the states of {sorted(missing)}"
            raise SnapshotError(msg)
        for name, operator in restored.items():
            operator.restore(states[name])
        load(unpack(runner, states[RUNNER]))
    except SnapshotError:
        for operator in operators.values():
            operator.versions.clear()
            operator.open()
        raise
