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
    return {name: op.snapshot() for name, op in operators.items()} | {RUNNER: pack(runner, own)}


def captured(
    runner: str, operators: Mapping[str, Operator], own: dict[str, Any]
) -> dict[str, Callable[[], bytes]]:
    """Return functions that pack the entries of ``snapshot``, on any thread, while the graph goes on.

    O(bytes) to copy them; the rest is left to the functions.
    """
    found: dict[str, Callable[[], bytes]] = {
        name: partial(pack, type(op).__name__, frozen(op.whole()), op.state_version)
        for name, op in operators.items()
    }
    return found | {RUNNER: partial(pack, runner, frozen(own))}


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
