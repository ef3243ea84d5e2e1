"""Segments: a source as a row of pieces in order of arrival, which can be read again one by one.

A task that fails is run again, and a query that was killed goes on where it stopped; both must find
the same tuples as before.  So a source is read by number: segment 0, segment 1, ...  Segments that were written
never change; more may come until the source has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from oop_engine.core.errors import SnapshotError, TraceError, UsageError
from oop_engine.core.operator import Message
from oop_engine.core.schema import Schema
from oop_engine.spark.state.ledger import Ledger
from oop_engine.system.knobs import knob
from oop_engine.traces.folder import LeftOut, files_of
from oop_engine.traces.trace import Trace, open_trace

__all__ = ["SEGMENT_ROWS", "Files", "Segments"]

SEGMENT_ROWS = knob(__name__, "SEGMENT_ROWS", 1 << 18)
"""Tuples in a segment that is spooled, and in a page that is read."""
_ENDED = "_SUCCESS"  # the mark that Spark too leaves in a folder it has finished


@runtime_checkable
class Segments(Protocol):
    """A source in segments; it is pickled and read in other processes.

    ``clock(i)``: the moments between which the arrival clock ran during segment ``i``, of all sources
    together; None where only the arrivals of the segment itself are known.
    """

    @property
    def schema(self) -> Schema:
        """The schema of the source."""
        ...

    def count(self) -> int:
        """Return how many segments there are by now."""
        ...

    def ended(self) -> bool:
        """Return whether no more can come."""
        ...

    def read(self, number: int) -> Iterable[Message]:
        """Return the messages of a segment, in order of arrival, and not earlier than those of the segment before."""
        ...

    def clock(self, number: int) -> tuple[int, int] | None:
        """Return the first arrival of all, and the last one up to the end of the segment."""
        ...


@dataclass(frozen=True)
class Files:
    """A trace in a file, or in the files of a folder in the order of their names: a segment each.

    A file has ended; a folder has when there is a file ``_SUCCESS`` in it, or if ``complete``.
    Names that start with ``.`` or ``_`` are of others; other files left out are logged, once a suffix.  Folders
    called ``name=value`` are read, and are columns.  Columns are those of ``schema``, ``arrival`` as in
    ``open_trace``.  Raises ``TraceError`` if there is no such file, or none that is a trace.

    ``known``: a file in which the names are written down as they are found, each with its bytes ("": none is).
    Then a segment keeps its number whatever comes later: a new file is read behind all that are known, whatever
    its name; new files that are found together are read in the order of their names.
    """

    path: str
    schema: Schema
    arrival: str | None = None
    complete: bool = False
    known: str = ""
    _left_out: LeftOut = field(default_factory=LeftOut, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.known:
            return
        if not Path(self.path).exists():
            msg = f"{self.path}: there is no such file or folder: give the path of a trace, or of a folder of traces"
            raise TraceError(msg)
        for path in self.paths()[:1]:
            open_trace(path, self.schema, arrival=self.arrival)  # its errors come before anything starts

    def paths(self) -> list[Path]:
        """Return the files there are by now, in the order of their names."""
        given = Path(self.path)
        if given.is_file():
            return [given]
        return [given / name for name in files_of(given, self._left_out)]

    def look(self) -> None:
        """Write down the names of new files, and that no more can come.

        Raises ``TraceError`` for a file that came after that: nobody would read it.
        """
        ended = self._has_ended()  # first: a file that comes before the mark is there when files are listed
        known = self._lines()
        names = {line[0] for line in known if line is not None}
        new = [path for path in self.paths() if self._name(path) not in names]
        if known and known[-1] is None:
            if new:
                msg = f"{new[0]}: it came after the source had ended: start with an empty checkpoint"
                raise TraceError(msg)
            return
        lines = [[self._name(path), path.stat().st_size] for path in new] + [None] * ended
        if lines:
            Ledger(Path(self.known)).append(*lines)

    def check(self, read: int) -> None:
        """Make sure that known files are there, and that of those the first ``read`` are as they were.

        Raises ``UsageError`` if not.
        """
        for number, line in enumerate(self._lines()):
            path = None if line is None else self._place(line[0])
            if path is None or (path.exists() and (number >= read or path.stat().st_size == line[1])):
                continue
            change = f"has {path.stat().st_size} bytes now, had {line[1]}" if path.exists() else "is gone"
            msg = f"{path}: the query has read it, and it {change}: leave files that were read where they are"
            raise UsageError(msg)

    def count(self) -> int:
        """Return how many files there are by now."""
        return sum(line is not None for line in self._lines()) if self.known else len(self.paths())

    def ended(self) -> bool:
        """Return whether no more can come."""
        return self._lines()[-1:] == [None] if self.known else self._has_ended()

    def read(self, number: int) -> Trace:
        """Return the messages of a file."""
        path = self._place(self._lines()[number][0]) if self.known else self.paths()[number]
        return open_trace(path, self.schema, arrival=self.arrival, page_rows=SEGMENT_ROWS)

    def _has_ended(self) -> bool:
        given = Path(self.path)
        return self.complete or given.is_file() or (given / _ENDED).exists()

    def _place(self, name: str) -> Path:
        given = Path(self.path)
        return given if given.is_file() else given / name

    def _name(self, path: Path) -> str:
        return path.name if path == Path(self.path) else path.relative_to(self.path).as_posix()

    def _lines(self) -> list[Any]:
        """Return the name and the bytes of each known file; None behind them: no more can come."""
        lines = Ledger(Path(self.known)).lines()
        for line in lines:
            match line:
                case None | [str(), int()]:
                    pass
                case _:
                    msg = f"{self.known} is damaged: restore the file, or start with an empty folder"
                    raise SnapshotError(msg)
        return lines

    def clock(self, number: int) -> None:
        """Return None: of other sources nothing is known."""
