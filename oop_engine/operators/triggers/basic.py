"""The protocol of triggers, and those that look at one thing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.triggers.distances import are_apart, is_measured

__all__ = [
    "AfterChange", "AfterCount", "AfterFraction", "Trigger", "WindowView", "check_trigger", "fired", "state_after",
]  # fmt: skip

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class WindowView(NamedTuple):
    """Windows that a trigger is asked about, in columns of ``n``.

    ``since``: tuples that came since the last version.  ``starts``, ``ends``: int64.  ``expected``: the watermark of
    the group, or its punctuation, whichever is larger.  ``results``: the columns of results now; ``last``: those of the
    last version, null where there is none.  ``matches``: how many tuples an ``AfterMatch`` is true for.  ``waited``: on
    the arrival clock, since the first tuple that is in no version.  ``asked``: whether a request asks for them.
    ``schema``: of the tuples.
    """

    since: Integers
    starts: Integers
    ends: Integers
    expected: Integers
    results: pa.RecordBatch
    last: pa.RecordBatch
    schema: Schema
    matches: Mapping[Trigger, Integers]
    waited: Integers
    asked: bool


class Trigger(ABC):
    """When a version of a result leaves.

    ``width``: columns of state that a window with a version has, 0 at first; where windows merge, those that ``adds``
    tells add up, and of the others the largest counts.
    """

    width: int = 0
    adds: tuple[bool, ...] = ()

    def leaves(self) -> Iterator[Trigger]:
        """Yield the triggers that it is made of, and that are made of none."""
        yield self

    @abstractmethod
    def fires(self, view: WindowView, state: Integers) -> Mask:
        """Return for which windows it fires, bool (n,); ``state`` int64 (n, width) is not changed."""

    def after(self, view: WindowView, state: Integers, asked: Mask) -> Integers:
        """Return the state of windows that fire now, int64 (n, width).

        ``asked``: for which windows this trigger was asked, bool (n,): not where a version leaves on time, or another
        trigger has its turn.
        """
        return state

    def check(self, names: list[str], schema: Schema, place: str) -> None:  # noqa: B027  # most fit any results
        """Raise ``GraphError`` in the name of ``place`` if it does not fit results of these names, of ``schema``."""


def check_trigger(trigger: Trigger) -> None:
    """Raise ``GraphError`` unless the ``width`` and ``adds`` of a trigger fit each other."""
    width, adds = trigger.width, trigger.adds
    if type(width) is not int or width < 0 or len(adds) != width:
        kind = type(trigger).__name__
        msg = (
            f"{kind}: width must be a number of columns, and adds a tuple of as many bools; got width={width!r:.40}, "
            f"adds={adds!r:.40}"
        )
        raise GraphError(msg)


def fired(trigger: Trigger, view: WindowView, state: Integers) -> Mask:
    """Return for which windows a trigger fires.  Raises ``ContractError`` unless it returns a mask of them."""
    fires: Any = trigger.fires(view, _fixed(state))
    mask = fires if fires.__class__ is np.ndarray else np.asarray(fires)
    if mask.dtype == np.bool_ and mask.shape in ((), view.since.shape):
        return mask if mask.shape else np.full(view.since.shape, mask)
    got = f"{fires!r:.80} ({type(fires).__name__})"
    msg = f"{type(trigger).__name__}: fires must return a mask of the windows, bool ({view.since.size},); got {got}"
    raise ContractError(msg)


def state_after(trigger: Trigger, view: WindowView, state: Integers, asked: Mask) -> Integers:
    """Return the state of windows that fire.  Raises ``ContractError`` unless it has the trigger's columns."""
    after: Any = trigger.after(view, _fixed(state), asked)
    if isinstance(after, np.ndarray) and after.dtype.kind in "iub" and after.shape == state.shape:
        return after
    got = f"{getattr(after, 'dtype', type(after).__name__)} {getattr(after, 'shape', '')}"
    msg = f"{type(trigger).__name__}: after must return the state of windows, int64 {state.shape}; got {got}"
    raise ContractError(msg)


def _fixed(state: Integers) -> Integers:
    """Return a view that no trigger writes to."""
    view = state.view()
    view.flags.writeable = False
    return view


@checked_arguments
@dataclass(frozen=True)
class AfterCount(Trigger):
    """``n`` tuples came.  Raises ``GraphError`` if ``n`` is not positive."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            msg = f"AfterCount: n must be at least 1 tuple; got n={self.n}"
            raise GraphError(msg)

    def fires(self, view: WindowView, state: Integers) -> Mask:
        return view.since >= self.n


@checked_arguments
@dataclass(frozen=True)
class AfterFraction(Trigger):
    """The watermark passed ``share`` of the window, from its start; asked when a tuple of the window comes.

    Raises ``GraphError`` unless ``0 < share < 1``.
    """

    share: float

    width = 1  # whether the last version left behind that
    adds = (False,)

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            msg = f"AfterFraction: share must be above 0 and below 1; got share={self.share}"
            raise GraphError(msg)

    def fires(self, view: WindowView, state: Integers) -> Mask:
        fired: Mask = self._passed(view) & (state[:, 0] == 0)
        return fired

    def after(self, view: WindowView, state: Integers, asked: Mask) -> Integers:
        return self._passed(view).astype(np.int64)[:, None]

    def _passed(self, view: WindowView) -> Mask:
        length = np.ceil(self.share * (view.ends - view.starts)).astype(np.int64)
        passed: Mask = view.expected >= view.starts + length
        return passed


@checked_arguments
@dataclass(frozen=True)
class AfterChange(Trigger):
    """The result ``name`` differs from that of the last version by more than ``by``, or there is none yet.

    Integers and decimals are compared exactly, moments and lengths of time in their unit.  Raises ``GraphError`` if
    ``by`` is negative, and when the graph is built if there is no such result, or it is a text or a list.
    """

    name: str
    by: float

    def __post_init__(self) -> None:
        if self.by < 0:
            msg = f"AfterChange: by must be at least 0; got by={self.by}"
            raise GraphError(msg)

    def check(self, names: list[str], schema: Schema, place: str) -> None:
        if self.name not in names:
            msg = f"{place}: AfterChange needs one of the results {', '.join(names)}; got {self.name!r}"
            msg += did_you_mean(self.name, names)
            raise GraphError(msg)

    def check_type(self, kind: pa.DataType, place: str) -> None:
        """Raise ``GraphError`` in the name of ``place`` if results of this type have no distance."""
        if not is_measured(kind):
            msg = f"{place}: AfterChange compares numbers and moments; {self.name!r} is {kind}: name another result"
            raise GraphError(msg)

    def fires(self, view: WindowView, state: Integers) -> Mask:
        now, last = (batch.column(self.name) for batch in (view.results, view.last))
        fired: Mask = are_apart(now, last, self.by) | (_nothing(last) & ~_nothing(now))
        return fired


def _nothing(column: pa.Array) -> Mask:
    """Return which values are null or NaN."""
    nulls: Mask = column.is_null(nan_is_null=pa.types.is_floating(column.type)).to_numpy(zero_copy_only=False)
    return nulls
