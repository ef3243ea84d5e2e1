"""Strategy: which store keeps the windows of a query.

    windows   a partial aggregate for each (group, window), in a hash table: WID (thesis 6.1)
    panes     one for each (group, pane), windows put together from them: Paned-WID (6.2)
    adaptive  panes of dense groups, tuples of sparse ones: AdaptWID (6.3)
    slices    panes that several definitions share (Scotty)
    runs      tuples of a group that are close together, merged: sessions; and panes whose states are lists
    ordered   tuples that a bound passes, in time order: ranks, markers, frames (``slicing/ordered``)
    bins      windows that end with each tuple, where asked for: two partial aggregates a tuple (fig. 6-7)

``auto`` takes panes where they are sooner by the cost model (``slicing/panes/pane_costs.py``), and adapts once groups
turn out to be sparse; else windows.  Definitions share slices where that suits (``slicing/panes/shared_slices.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import gcd
from typing import Literal, NamedTuple

from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Part
from oop_engine.operators.slicing.accumulators import is_compiled, is_ragged
from oop_engine.operators.slicing.checks import MOST_WINDOWS, check_overlap
from oop_engine.operators.slicing.ordered.held import Held, shared_tuples
from oop_engine.operators.slicing.ordered.ordered_store import OrderedStore
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.panes.pane_costs import gain
from oop_engine.operators.slicing.panes.shared_slices import Slicing, shared
from oop_engine.operators.slicing.panes.slice_windows import Assembly, check_assembly
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.slicing.stores.adaptive_groups import WIDE, AdaptiveGroups, eager_bytes
from oop_engine.operators.slicing.stores.bin_store import BinStore
from oop_engine.operators.slicing.stores.pane_store import PaneStore
from oop_engine.operators.slicing.stores.run_store import RunStore
from oop_engine.operators.slicing.stores.session_store import SessionStore
from oop_engine.operators.slicing.stores.slice_ring import SliceRing
from oop_engine.operators.slicing.stores.tail import Tail
from oop_engine.operators.slicing.stores.whole_store import WholeStore
from oop_engine.operators.slicing.stores.window_store import WindowStore
from oop_engine.operators.windows import (
    Definition,
    Extents,
    Gap,
    Merging,
    Over,
    is_folded,
    is_grid,
    merges,
    nested,
)

__all__ = ["Assembly", "Query", "Strategy", "checked_query", "chosen", "in_bins", "numbered_stores", "stores"]

Strategy = Literal["auto", "windows", "panes", "adaptive", "stacks", "bins"]
Kept = Literal["windows", "panes", "watched", "adaptive", "runs", "landmark", "still"]

_MANY = 100  # tuples of a group in a pane
_READ = {"read early": 16, "read late": 64}  # panes of a window, combined as tuples come: all, or late ones
_BINS = "windows of each tuple (SlideByTuple) without carry and own, and no aggregate of lists or that does not commute"


@dataclass(frozen=True)
class Query:
    """The question to a stream of ``schema``, of which columns ``read`` are used.

    ``share``: definitions may share stores.  ``first``: the number of the first definition that is asked for.
    ``changing``: each may go by itself, so sessions have stores of their own.
    """

    output: Output
    schema: Schema
    read: set[str]
    empty: bool
    strategy: str
    share: bool
    assembly: Assembly = "auto"
    first: int = 0
    changing: bool = False

    @property
    def numbers(self) -> range:
        """The numbers of the definitions."""
        return range(self.first, len(self.output.definitions))

    @property
    def names(self) -> list[str]:
        """The names of all definitions, by number."""
        return self.output.names

    @property
    def gaps(self) -> dict[int, Gap]:
        """The sessions that share a store, the shortest gap first."""
        return {} if self.changing else nested({n: self.output.definitions[n] for n in self.numbers})

    @property
    def parts(self) -> list[Part]:
        """The partial aggregates."""
        return self.output.parts

    @property
    def granularity(self) -> int:
        """The length whose multiples all windows end at; 1 where that follows from tuples."""
        every = self.output.definitions
        grids = [one for one in every if is_grid(one) and one.over is Over.ATTRIBUTE]
        lengths = (length for one in grids for length in (one.slide, one.origin))
        return gcd(*lengths) if len(grids) == len(every) else 1

    @cached_property
    def slicings(self) -> list[Slicing]:
        """The slices that definitions share, and which ones do."""
        asked = self.share or self.assembly != "auto"
        if not asked or self.empty or self.strategy != "auto" or is_ragged(self.parts):
            return []
        definitions = self.output.definitions
        some = ((number, definitions[number]) for number in self.numbers)
        return shared(definitions, [n for n, one in some if is_grid(one) and not one.landmark])

    @cached_property
    def alone(self) -> list[int]:
        """The definitions that have a store of their own."""
        together = {number for slicing in self.slicings for number in slicing.shape[3].tolist()}
        return [number for number in self.numbers if number not in together]


class Choice(NamedTuple):
    """How the windows of a definition are kept, and ``why``, in a line."""

    kept: Kept
    why: str


def stores(query: Query) -> list[Store]:
    """Return the stores of a query, empty."""
    return [store for _, store in numbered_stores(query)]


def numbered_stores(query: Query) -> Iterator[tuple[list[int], Store]]:
    """Yield the stores of a query, empty, each with the numbers of its definitions."""
    for slicing in query.slicings:
        yield slicing.shape[3].tolist(), SliceRing(query.output, slicing, query.assembly)
    if gaps := query.gaps:
        yield list(gaps), _runs(query, gaps)
    folded = {n: one for n in query.alone if is_folded(one := query.output.definitions[n])}
    shared = {} if query.changing else shared_tuples(folded, query.schema, query.read, query.output)
    for number in query.alone:
        if number not in gaps:
            yield [number], _store(query, number, shared.get(number))


def checked_query(query: Query) -> None:
    """Raise ``GraphError`` if a definition has too many windows or slices, or no way to be kept as asked."""
    place = query.output.place
    check_assembly(query.assembly, query.slicings, query.parts, place, grouped=query.output.grouped)
    for slicing in query.slicings:
        if slicing.longest > MOST_WINDOWS:
            name = query.names[int(slicing.shape[3, -1])]
            msg = (
                f"{place}: a window must have at most {MOST_WINDOWS:,} slices; {name!r} has {slicing.longest:,} "
                f"of {slicing.unit} {query.schema.unit}: take a range, slide and origin with a larger common divisor"
            )
            raise GraphError(msg)
    for number in query.alone:
        definition = query.output.definitions[number]
        if is_grid(definition):
            _check_strategy(query, definition)
            named = f"{place}: {query.names[number]!r}" if query.share else place
            check_overlap(definition, named, in_table=chosen(query, definition).kept != "adaptive")
        elif not in_bins(query, definition):
            _check_merging(query, query.names[number])


def _check_merging(query: Query, name: str) -> None:
    """Raise ``GraphError`` if windows that merge are asked for in a way that only grids have."""
    if query.strategy == "bins" and not query.empty:
        msg = f"{query.output.place}: strategy='bins' needs {_BINS}; got {name}: leave the choice to strategy='auto'"
        raise GraphError(msg)
    if query.strategy != "auto" or query.empty:
        given = f"strategy={query.strategy!r}" if query.strategy != "auto" else "empty=True"
        msg = (
            f"{query.output.place}: {given} needs windows on a grid (Tumbling, Sliding...); those of {name} follow "
            "from their tuples: leave it out, or use an operator for each"
        )
        raise GraphError(msg)


def _check_strategy(query: Query, extents: Extents) -> None:
    stacks = "TupleBased windows, no groups, no empty ones, and no aggregate of lists or UserDefined"
    wanted = {
        "panes": (not extents.landmark, "windows of one length"),
        "adaptive": (_can_adapt(extents), "windows of one length over the progressing attribute"),
        "stacks": (False, stacks),
        "bins": (False, _BINS),
    }
    can, needs = wanted.get(query.strategy, (True, ""))
    if not can:
        got = f"strategy={query.strategy!r} needs {needs}; got {', '.join(query.names)}"
        msg = f"{query.output.place}: {got}: leave the choice to strategy='auto'"
        raise GraphError(msg)


def _store(query: Query, number: int, held: Held | None = None) -> Store:
    definition = query.output.definitions[number]
    rest = query.parts, query.output.stamp
    if is_grid(definition):
        kept = chosen(query, definition).kept
        if kept in ("runs", "landmark"):
            return PaneStore(number, definition, *rest, every=query.empty)
        return _window_store(query, number, definition, kept)
    if is_folded(definition):
        if in_bins(query, definition):
            return BinStore(number, definition, *rest)
        return OrderedStore(number, definition, query.output, query.schema, query.read, held)
    assert merges(definition)
    if definition.single and not is_ragged(query.parts):
        return WholeStore(number, definition, *rest)
    return _runs(query, {number: definition})


def _runs(query: Query, merging: Mapping[int, Merging]) -> Store:
    """Return the store of windows that merge: sessions without lists have one of their own."""
    rest = query.parts, query.output.stamp
    gaps = {} if is_ragged(query.parts) else nested(merging)
    return SessionStore(gaps, *rest) if gaps else RunStore(merging, *rest)


def _window_store(query: Query, number: int, extents: Extents, kept: Kept) -> WindowStore:
    output, adapts = query.output, partial(AdaptiveGroups, query.parts, query.schema, query.read)
    return WindowStore(
        number, extents, query.parts, output.stamp, panes=kept in ("panes", "watched", "still"), every=query.empty,
        still=kept == "still", adapts=adapts if kept in ("watched", "adaptive") else None,
    )  # fmt: skip


def in_bins(query: Query, definition: Definition) -> bool:
    """Tell whether windows are put together in bins: a window for each tuple, of parts in any order, as asked."""
    if query.strategy != "bins" or query.empty or not query.output.commutative or is_ragged(query.parts):
        return False
    return is_folded(definition) and definition.trailing is not None


def _can_adapt(extents: Extents) -> bool:
    """Tell whether tuples can be held for later: windows are of one length, and over an attribute."""
    return not extents.landmark and extents.over is Over.ATTRIBUTE


def chosen(query: Query, extents: Extents) -> Choice:
    """Return how the windows of a grid are kept.  O(1); nothing of the data is known yet."""
    asked = query.strategy
    if extents.landmark:
        return Choice(
            "landmark",
            "rows, one a group and window with a tuple: a landmark window has no fixed number of panes",
        )
    if is_ragged(query.parts):
        return Choice("runs", "runs of panes: lists of values, a row a group and pane, merged at the end")
    if asked in _READ:  # before they close
        few = extents.panes[0] <= _READ[asked] and is_compiled(query.parts) and gain(extents, 1) <= 1
        return Choice("still", "panes") if few else Choice("windows", "windows")
    if asked == "windows":
        return Choice("windows", "windows, as asked: a partial aggregate for each (group, window)")
    if asked == "adaptive":
        return Choice("adaptive", f"adaptive, as asked: {_switching(query, extents)}")
    if asked == "panes":
        return Choice("panes", f"panes, as asked: {_costs(extents)}")
    if not is_compiled(query.parts):
        return Choice("windows", "windows: to combine states without compiled loops takes long")
    if gain(extents, 1) > 1:
        return Choice("windows", f"windows: by panes it is {_costs(extents)}")
    if not _can_adapt(extents):
        return Choice("panes", f"panes: {_costs(extents)}")
    if extents.overlap > WIDE:
        return Choice("adaptive", f"adaptive, for a tuple is in many windows: {_switching(query, extents)}")
    sparse = f"where groups are sparse, {_switching(query, extents)}"
    return Choice("watched", f"panes: {_costs(extents)}; {sparse}")


def _costs(extents: Extents) -> str:
    few, many = (f"{gain(extents, n):.2f}" for n in (1, _MANY))
    return (
        f"{extents.panes[0]} a window, {few} of the time of windows at 1 tuple a group and pane, "
        f"{many} at {_MANY} (eqs. 6.1, 6.3)"
    )


def _switching(query: Query, extents: Extents) -> str:
    """Say how many tuples a group must have to be aggregated at once, on a stream in order."""
    tuple_bytes = Tail(query.schema, query.read).tuple_bytes
    least = eager_bytes(extents, query.parts).threshold(extents.range or 0, tuple_bytes)
    return f"tuples are kept, and panes of groups with more than {least:.1f} tuples a window (cond. 6.9)"
