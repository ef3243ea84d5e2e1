"""Definition: windows in whole units, and the questions that an operator asks of them.

A window is written as a value with lengths as users write them (``Windows``).  ``bound`` turns it into a definition in
plain integers, in the unit of the progressing attribute.  Definitions differ in one thing, ``known_by``: from what the
windows of a tuple are known.

    position     from its time or number alone: a grid (``grid.py``, ``Extents``)
    neighbours   from the tuples around it, in any order: windows that merge (``merging.py``, ``Merging``)
    order        from all earlier ones, so once a bound has passed it: folded on the bound (``folding.py``, ``Folding``)

It decides which store keeps the windows (``slicing/strategy.py``).  Everything else that a kind has of its own is an
answer of its definition, so a new kind is one file.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.schema import Schema

if TYPE_CHECKING:
    from oop_engine.operators.windows.grid import Extents

__all__ = ["Definition", "Integers", "KnownBy", "Over", "Windows", "completed_by_rows"]

Integers = NDArray[np.int64]
KnownBy = Literal["position", "neighbours", "order"]


class Over(Enum):
    """The kind of position that tuples have: an attribute, or a number given on arrival."""

    ATTRIBUTE = "attribute"
    ROWS = "rows of the stream"
    GROUP_ROWS = "rows of the group"


class Definition:
    """A window definition in whole units; what is here are the answers of most kinds.

    ``known_by``: from what windows of a tuple are known.  ``extents``: the grid that they lie on, if any.  ``over``:
    the kind of position that tuples have.  ``whole_stream``: a group's windows depend on tuples of other groups.
    ``partitioned``: tuples are counted within their group, so there must be a key.  ``numbered``: windows depend on
    the order of arrival within the group.
    ``varying``: why versions of windows are emitted as retractions alone; "": in all modes of ``emit``, for no later
    tuple changes an extent.
    ``sides``: names of the columns that have the extents.
    """

    known_by: ClassVar[KnownBy]
    varying: ClassVar[str] = "follow from tuples, so a late one may end a window: it needs a retraction"
    sides: ClassVar[tuple[str, str]] = ("window_start", "window_end")
    extents: Extents | None = None
    over: Over = Over.ATTRIBUTE
    whole_stream: bool = False
    partitioned: bool = False
    numbered: bool = False

    @property
    def retains(self) -> str:
        """Return the state of a group that stays until it ends, and why; "": none does."""
        return ""

    @property
    def distance(self) -> int | None:
        """Return how far apart neighbours of one window are at most; None: that does not decide it."""
        return None

    def words(self) -> str:
        """Return in a few words how windows are cut."""
        return type(self).__name__

    def ordered(self) -> Definition:
        """Return the same windows as folded on the bound, for aggregates that depend on the order of tuples.

        Those that cannot be return themselves.
        """
        return self

    def columns(self, schema: Schema) -> frozenset[str]:
        """Return the columns that it reads of tuples, beside the progressing attribute."""
        return frozenset()

    def more(self, schema: Schema) -> list[tuple[str, pa.DataType]]:
        """Return names and types of the columns that results have before their extents."""
        return []


@runtime_checkable
class Windows(Protocol):
    """A window definition, as it is written in a query.

    Where the order of arrival decides, it has ``by_arrival = True``; where rows complete it by themselves, without
    punctuation, ``completed_by = "rows"``.
    """

    def bound(self, schema: Schema, place: str = "windows") -> Definition:
        """Return the definition in whole units of ``schema``'s progressing attribute.

        Raises ``GraphError`` in the name of ``place`` if a length is not positive or does
        not fit the unit.
        """
        ...


def completed_by_rows(windows: Windows) -> bool:
    """Return whether rows complete the windows as they arrive, and nothing else does."""
    return getattr(windows, "completed_by", "punctuation") == "rows"
