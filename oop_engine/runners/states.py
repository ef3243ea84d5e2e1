"""States: a running graph as bytes, an entry an operator, and one of the runner itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from numbers import Integral
from typing import Any

from oop_engine.core.errors import ContractError, EngineError, OperatorError, SnapshotError
from oop_engine.core.operator import Operator, State
from oop_engine.core.registry import is_ours
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import frozen, pack, unpack
from oop_engine.runners.faults import counts_of

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
    states: dict[str, Callable[[], bytes]] = {
        name: partial(_packed, name, op, _frozen(name, op)) for name, op in operators.items()
    }
    return states | {RUNNER: partial(pack, runner, frozen(own))}


def _frozen(node: str, operator: Operator) -> dict[str, Any]:
    """Return the state of an operator, of which it keeps no part."""
    whole = _whole(node, operator)
    try:
        states: dict[str, Any] = frozen(whole)
    except EngineError as error:
        error.args = (f"operator {node!r} ({type(operator).__name__}): its state cannot be saved: {error}",)
        raise
    return states


def _whole(node: str, operator: Operator) -> dict[str, Any]:
    """Return the state of an operator; raises ``SnapshotError`` if it keeps one that a restart would not bring back."""
    kind = type(operator)
    place = f"operator {node!r} ({kind.__name__})"
    state = _size(place, operator)
    if kind.save is Operator.save and (state.tuples or state.partials or state.groups):
        msg = f"{place}: keeps a state, {state}, and saves none, so a restart would lose it: write save and load"
        raise SnapshotError(msg)
    try:
        whole = operator.whole()
    except EngineError as error:
        error.args = (f"{place}: {error}",)
        raise
    except Exception as error:
        msg = f"{place}: save failed: {type(error).__name__}: {error}"
        raise OperatorError(msg) from error
    given: object = whole
    if not isinstance(given, dict):
        msg = f"{place}: save must return a dictionary of the parts of its state; got {given!r:.80}"
        raise SnapshotError(msg)
    if not whole and not is_ours(kind) and any(state.in_use):
        msg = f"{place}: keeps a state, {state}, and save returns nothing of it, so a restart would lose it"
        raise SnapshotError(msg)
    if kind.load is Operator.load and whole:
        msg = f"{place}: saves {', '.join(map(str, whole))}, and loads nothing, so a restart would lose it: write load"
        raise SnapshotError(msg)
    return whole


def _size(place: str, operator: Operator) -> State:
    """Return the size of a state; raises ``ContractError`` if its numbers are none that a checkpoint can keep."""
    state: Any = operator.state()
    counts_of(place, operator)
    if isinstance(state, State) and all(map(_is_size, state)):
        return state
    msg = f"{place}: state() must return a State of whole numbers from 0 on; got {state!r:.80}"
    raise ContractError(msg)


def _is_size(number: object) -> bool:
    return isinstance(number, Integral) and int(number) >= 0


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
            try:
                operator.restore(states[name])
            except SnapshotError as error:
                way_out = f"go on with the program that saved it, or begin this node empty: --without-state-of {name}"
                msg = f"graph {graph!r}, node {name!r}: {error}: {way_out}"
                raise SnapshotError(msg) from error
        load(unpack(runner, states[RUNNER]))
    except SnapshotError:
        for operator in operators.values():
            operator.versions.clear()
            operator.open()
        raise
