"""Round trip: whether the states of operators that others wrote survive save and load; tried once, on real states.

A restart finds out too late: by then the state is gone.  So the first state that is not the empty one is loaded into a
fresh operator, which has to save the same.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import EngineError, SnapshotError
from oop_engine.core.graphs.graph import Plan
from oop_engine.core.operator import Operator
from oop_engine.core.registry import is_ours
from oop_engine.core.saved import Saved
from oop_engine.core.snapshot import unpack

__all__ = ["RoundTrip"]

_LOG = logging.getLogger("oop_engine")
_ABSENT = object()
_BY_RUNNER = {"schemas_in", "schemas_out", "versions"}


class RoundTrip:
    """Tries the states of the operators of others in ``plan``, each until it has a state that is not empty."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._left = [n.name for n in plan.of_kind("operator") if not is_ours(type(plan.operator(n.name)))]

    def look(self, running: Mapping[str, Operator]) -> None:
        """Log an operator whose attributes have changed, and that saves nothing; in the thread that runs it."""
        for name in [*self._left]:
            if name not in running or type(running[name]).save is not Operator.save:
                continue
            fresh = self._fresh(name)
            if fresh is None or not (changed := _changed(running[name], fresh)):
                continue
            self._left.remove(name)
            words = "operator %r (%s): %s changed since open, and save stores nothing: a restart loses that; if it "
            _LOG.warning(
                words + "matters, write state, save and load", name, type(fresh).__name__, ", ".join(changed)
            )

    def packed(self, states: Mapping[str, Callable[[], bytes]]) -> dict[str, bytes]:
        """Return the states as bytes.

        Raises ``SnapshotError`` if an operator does not take back a state that it saved.  O(bytes); to try it costs
        that once more, until the state is not the empty one.
        """
        packed = {name: pack() for name, pack in states.items()}
        for name in [*self._left]:
            if name in packed and (fresh := self._fresh(name)) is not None:
                self._check(name, fresh, packed[name], empty := fresh.snapshot())
                if packed[name] != empty:
                    self._left.remove(name)
        return packed

    def _fresh(self, name: str) -> Operator | None:
        try:
            return self._plan.operator(name).opened(*self._plan.inputs(name))
        except Exception:  # its own error came, or comes, where it is opened for its work
            return None

    def _check(self, name: str, operator: Operator, state: bytes, empty: bytes) -> None:
        kind = type(operator)
        place = f"operator {name!r} ({kind.__name__})"
        try:
            operator.restore(state)
            again = operator.snapshot()
        except EngineError as error:
            msg = f"{place}: load cannot read the state of save, so a restart would fail: {error}: mend load"
            raise SnapshotError(msg) from error
        if again == state:
            return
        saved, loaded, none = (_parts(kind, each) for each in (state, again, empty))
        for part, value in saved.items():
            restored = loaded.get(part, _ABSENT)
            if not _lost(value, restored, none.get(part, _ABSENT)):
                continue
            got = "nothing" if restored is _ABSENT else _short(restored)
            msg = (
                f"{place}: load must take back all that save returned; {part!r} was {_short(value)} when it was saved, "
                f"and is {got} after load: read it in load, as in state.integer({part!r})"
            )
            raise SnapshotError(msg)


def _parts(kind: type[Operator], data: bytes) -> Saved:
    return unpack(kind.__name__, data, kind.state_version, kind.migrations)


def _lost(saved: Any, loaded: Any, empty: Any) -> bool:
    """Return whether a part is another after load; one with its values in another order, or cut otherwise, is not."""
    if _same(saved, loaded):
        return False
    if loaded is _ABSENT or _same(loaded, empty) or type(saved) is not type(loaded):
        return True
    sized = isinstance(saved, np.ndarray | pa.RecordBatch | dict | list)
    return not sized or _size(saved) != _size(loaded)


def _size(value: Any) -> int:
    return value.num_rows if isinstance(value, pa.RecordBatch) else len(value)


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, pa.RecordBatch):
        return bool(a.equals(b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b or (a != a and b != b))  # NaN is itself here


def _short(value: object) -> str:
    if isinstance(value, pa.RecordBatch):
        return f"a batch of {value.num_rows:,} rows"
    return " ".join(f"{value!r:.60}".split())


def _changed(operator: Operator, fresh: Operator) -> list[str]:
    """Return the names of attributes that are not as those of a fresh operator."""
    names = []
    for name, value in vars(operator).items():
        try:
            same = name in _BY_RUNNER or pickle.dumps(value) == pickle.dumps(vars(fresh).get(name, _Absent))
        except Exception:  # nothing that could be compared, such as a function
            continue
        if not same:
            names.append(name)
    return names


class _Absent:
    """Stands for an attribute that a fresh operator has not."""
