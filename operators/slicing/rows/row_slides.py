"""Row slides: partial aggregates that slide over the panes of tuple-based windows.

A slide reduces the tuples of a page to panes, a run of tuples each, and slides over those.
What it keeps are one column of at most as many panes as a window has, and the pane that is not
complete.  How it slides depends on the kind: ``operators/slicing/rows/row_stacks.py`` or
``operators/slicing/rows/row_sums.py``.

Source: Theodorakis et al., Hammer Slide, ADMS 2018.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.errors import SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.saved import Saved
from oop_engine.operators.aggregates import Arrays, Part
from oop_engine.operators.slicing.rows.row_panes import Passed, RowPanes

__all__ = ["RowSlide", "read_only"]

Array = NDArray[Any]


class RowSlide(ABC):
    """A partial aggregate of tuple-based windows, whose panes are ``panes``; ``given``: the type of its column.

    ``ring`` has a cell for each pane of a window and one more; it is as long as needed so far.
    """

    columns: ClassVar[int] = 1
    nothing: np.generic | int = 0
    kind: np.dtype[Any] = np.dtype(np.int64)

    def __init__(self, part: Part, given: pa.DataType, panes: RowPanes) -> None:
        self.part = part
        self.panes = panes
        self._at = 0
        self._ring = self._cells(1)

    @abstractmethod
    def add(self, page: Page, passed: Passed, number: int) -> Arrays:
        """Take a page after the first ``number`` tuples; return the states of the windows it completes.

        O(rows), in kernels.  Raises ``SumOverflowError`` with the window in which a sum would wrap.
        """

    @abstractmethod
    def rest(self, passed: Passed, number: int) -> Arrays:
        """Return the states of windows that end behind the last of ``number`` tuples."""

    @property
    def nbytes(self) -> int:
        """Bytes of the panes kept."""
        return int(self._ring.nbytes)

    def save(self) -> dict[str, Any]:
        """Return what is kept, for a snapshot."""
        return {"at": self._at, "ring": self._ring}

    def load(self, saved: Saved) -> None:
        """Restore a snapshot."""
        shape = (None,) if self.columns == 1 else (self.columns, None)
        self._ring = saved.numbers("ring", shape, self.kind)
        room = self._ring.shape[-1] - 1
        self._at = saved.integer("at", least=0, most=min(room, self.panes.length - 1))
        if room > self.panes.length:
            msg = f"'ring' must have room for a window of {self.panes.length}; got {room}"
            raise SnapshotError(msg)

    def _cells(self, size: int) -> Array:
        shape = size if self.columns == 1 else (self.columns, size)
        return np.full(shape, self.nothing, self.kind)

    def _column(self, size: int) -> Array:
        return np.empty(size if self.columns == 1 else (self.columns, size), self.kind)

    def _make_room(self, panes: int) -> None:
        """Let the ring have room for so many panes more, or for a whole window."""
        needed, room = min(self._at + panes, self.panes.length), self._ring.shape[-1] - 1
        if needed > room:
            old = self._ring
            self._ring = self._cells(min(max(needed, 2 * room), self.panes.length) + 1)
            self._ring[..., :room] = old[..., :room]

    def _ended(self, passed: Passed, carry: Any) -> Array:
        """Return the panes that the end of the stream completes: the open one, and empty ones."""
        panes = self._cells(passed.panes)
        if not self.panes.of_one:
            panes[..., 0] = carry
        return read_only(panes)

    def _of_windows(self, results: Array, passed: Passed) -> Array:
        """Return the results of windows among those of panes."""
        return results if self.panes.step == 1 else results[..., passed.first :: self.panes.step].copy()


def read_only(array: Array) -> Array:
    """Return an array that cannot be written to any more: one signature of each kernel, whoever made it."""
    array.flags.writeable = False
    return array
