"""Window strategies: how the aggregates of windows are kept, and which way suits a query.

    windows   a partial aggregate for each (group, window), in a hash table: WID (thesis 6.1)
    panes     one for each (group, pane), windows put together from them: Paned-WID (6.2)
    adaptive  panes of dense groups, tuples of sparse ones: AdaptWID (6.3)

``auto`` takes panes where the cost model says that they are sooner (``operators/slicing/pane_costs.py``),
and adapts once groups turn out to be sparse; else windows.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from oop_engine.core.schema import Schema
from oop_engine.operators.slicing.accumulators import is_compiled
from oop_engine.operators.slicing.adaptive_groups import WIDE, AdaptiveGroups, eager_bytes
from oop_engine.operators.slicing.pane_costs import gain, in_panes
from oop_engine.operators.slicing.tuple_tail import Tail
from oop_engine.operators.slicing.window_groups import WindowGroups
from oop_engine.operators.slicing.window_results import Results
from oop_engine.operators.windows import Over

__all__ = ["Query", "can_adapt", "chosen", "makes_table"]

Kept = Literal["windows", "panes", "adaptive"]

_MANY = 100  # tuples of a group in a pane


class Query(NamedTuple):
    """What is asked of a stream of ``schema``: windows and aggregates, of ``read`` columns, by group."""

    results: Results
    schema: Schema
    by: tuple[str, ...]
    read: set[str]
    empty: bool

    def groups(self, kept: Kept, *, adapting: bool) -> WindowGroups:
        """Return what keeps the groups' windows; ``adapting``: panes give way to it when they are sparse."""
        if adapting:
            at_once = kept == "adaptive"
            return AdaptiveGroups(self.results, self.schema, self.by, self.read, at_once=at_once)
        return WindowGroups(self.results, self.schema, self.by, empty=self.empty, panes=kept == "panes")


class Choice(NamedTuple):
    """A strategy, whether it adapts, and ``why``, in a line."""

    kept: Kept
    adapting: bool
    why: str


def can_adapt(query: Query) -> bool:
    """Tell whether tuples can be kept for later: windows are of one length, and over an attribute."""
    extents = query.results.extents
    return not (query.empty or extents.landmark) and extents.over is Over.ATTRIBUTE


def makes_table(query: Query, choice: Choice) -> bool:
    """Tell whether some tuples may get a partial aggregate for each window that they are in."""
    return not (choice.kept == "adaptive" and is_compiled(query.results.parts))


def chosen(query: Query, asked: str = "auto") -> Choice:
    """Return how the windows of a query are kept.  O(1); nothing of the data is known yet."""
    if asked == "windows":
        return Choice("windows", False, "windows, as asked: a partial aggregate for each (group, window)")
    if asked == "adaptive":
        return Choice("adaptive", True, f"adaptive, as asked: {_switching(query)}")
    if asked == "panes":
        return Choice("panes", False, f"panes, as asked: {_costs(query)}")
    if obstacle := _obstacle(query):
        return Choice("windows", False, f"windows: {obstacle}")
    if gain(query.results.extents, 1) > 1:
        return Choice("windows", False, f"windows: by panes it is {_costs(query)}")
    if not can_adapt(query):
        return Choice("panes", False, f"panes: {_costs(query)}")
    if query.results.extents.overlap > WIDE:
        return Choice("adaptive", True, f"adaptive, for a tuple is in many windows: {_switching(query)}")
    return Choice("panes", True, f"panes: {_costs(query)}; where groups are sparse, {_switching(query)}")


def _obstacle(query: Query) -> str:
    """Return why windows cannot be put together from panes, or not soon; or nothing."""
    if query.results.extents.landmark:
        return "a landmark window has no fixed number of panes"
    if query.empty:
        return "empty=True asks for windows that no pane tells of"
    return (
        ""
        if is_compiled(query.results.parts)
        else "a state without compiled loops takes long to put together from panes"
    )


def _costs(query: Query) -> str:
    extents = query.results.extents
    panes, _ = in_panes(extents)
    few, many = (f"{gain(extents, n):.2f}" for n in (1, _MANY))
    return (
        f"{panes} a window, {few} of the time of windows at 1 tuple a group and pane, "
        f"{many} at {_MANY} (eqs. 6.1, 6.3)"
    )


def _switching(query: Query) -> str:
    """Say how many tuples a group must have to be aggregated at once, on a stream in order."""
    eager, in_panes = eager_bytes(query.results)
    tail = Tail(query.schema, query.read, query.results.extents)
    least = eager.threshold(query.results.extents.range or 0, tail.tuple_bytes)
    kept = "panes" if in_panes else "partial aggregates"
    return f"tuples are kept, and {kept} of groups with more than {least:.1f} tuples a window (cond. 6.9)"
