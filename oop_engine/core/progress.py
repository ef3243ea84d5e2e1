"""Progress: the bounds of a stream, or the minimum of the bounds of several.

The only place where bounds are combined.  Group ``g`` has progressed on one input to
``max(linear, grouped[g])``, and over several inputs to the minimum of that (Meld, thesis
8.2, for linear punctuation; group-wise, the same for each group).  A group is kept
while its bound on some input is larger than that of the whole stream, and among many groups somewhat longer
(``groups/looks.py``).

Watermarks have a table of the same kind, made when the first one comes.  Of an input the larger of its watermark and
its hard bound is expected, so that table takes hard bounds too; a combined watermark is emitted where it has grown
beyond the combined hard bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.groups.bound_table import BoundTable
from oop_engine.core.groups.group_index import IN_NUMPY, KeyTables
from oop_engine.core.groups.input_bounds import InputBounds
from oop_engine.core.punctuation import NEVER, GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved

__all__ = ["Progress"]

Bounds = NDArray[np.int64]


class Progress:
    """Bounds of ``inputs`` streams, and their minimum.

    ``linear``: the minimum of the bounds for whole streams.  ``groups``: how many are kept.

    ``remember_ended``: keep groups that were ended for good (bound ``FOREVER``).  ``Punctuate``
    needs it to refuse their late tuples; others forget such a group
    when every input has ended it, for no tuple of it can come.

    ``tables``: how keys of groups are looked up, in NumPy and Python, or in kernels (``operators/keys/tables.py``).

    >>> progress = Progress(inputs=2)
    >>> progress.advance(0, Linear(60)), progress.advance(1, Linear(40))
    ([], [Linear(below=40)])
    >>> progress.linear
    40
    """

    def __init__(
        self, inputs: int = 1, *, remember_ended: bool = False, tables: KeyTables = IN_NUMPY
    ) -> None:
        self._linear = np.full(inputs, NEVER)  # (inputs,)
        self.linear = NEVER
        self.groups = 0
        self._remember_ended, self._key_tables = remember_ended, tables
        self._tables: dict[tuple[str, ...], BoundTable | InputBounds] = {}
        self._expected: Progress | None = None  # of watermarks and hard bounds together

    def linear_of(self, port: int) -> int:
        """The bound of input ``port`` for its whole stream."""
        return int(self._linear[port])

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept, with the room there is for more."""
        linear, expected = 8 * (self._linear.size + 1), self._expected
        if not self._tables and (expected is None or not expected._tables):  # as mostly
            return linear if expected is None else 2 * linear
        more = 0 if expected is None else expected.nbytes
        return linear + more + sum(table.nbytes for table in self._tables.values())

    def advance(self, port: int, punctuation: Punctuation) -> list[Punctuation]:
        """Take a punctuation of input ``port``; return the punctuation of all inputs together that follows newly.

        O(its groups x inputs) for a group-wise one; a linear one costs the groups whose bound it raises or passes,
        O(inputs + log groups) each, amortised.  A joint one passes when there is a single input, else it is dropped,
        which is always sound.  Of a watermark that of all inputs together follows.
        """
        if isinstance(punctuation, Linear):  # as mostly
            return self.advance_linear(port, punctuation.below)
        soft = list[Punctuation]()
        if isinstance(punctuation, Watermark) and self._expected is not None and not self.groups:
            bounds = punctuation.of
            if isinstance(bounds, Linear):
                return self._beyond(self._expected.advance_linear(port, bounds.below))
        if self._expected is not None or isinstance(punctuation, Watermark):
            soft = self._expect(port, punctuation)
        match punctuation:
            case GroupWise():
                out = self._advance_groups(port, punctuation)
            case Joint():
                return [punctuation] if self._linear.size == 1 else []
            case _:
                out = []
        self._count_groups()
        return out + self._beyond(soft) if soft else out

    def advance_linear(self, port: int, below: int) -> list[Punctuation]:
        """Do so for a bound of the whole stream of an input."""
        soft = [] if self._expected is None else self._expected.advance_linear(port, below)
        out = list[Punctuation]()
        if below <= self._linear[port]:
            return self._beyond(soft) if soft else out
        was, self._linear[port] = int(self._linear[port]), below
        linear = below if self._linear.size == 1 else min(self._linear.tolist())
        if linear > self.linear:
            out.append(Linear(linear))
            self.linear = linear
        if self._tables:
            out += self._over_groups(port, was)
        if self.groups:
            self._count_groups()
        return out + self._beyond(soft) if soft else out

    def _count_groups(self) -> None:
        more = 0 if self._expected is None else self._expected.groups
        self.groups = more + sum(map(len, self._tables.values()))

    def _expect(self, port: int, punctuation: Punctuation) -> list[Punctuation]:
        """Take a punctuation of either kind as a watermark; return the bounds of all inputs that have grown."""
        if self._expected is None:
            self._expected = self._alike()
            for input_port, bound in enumerate(self._linear.tolist()):
                self._expected.advance(input_port, Linear(bound))
                for table in self._tables.values():
                    self._expected.advance(input_port, table.of_input(input_port))
        if isinstance(punctuation, Joint):
            return []
        return self._expected.advance(
            port, punctuation.of if isinstance(punctuation, Watermark) else punctuation
        )

    def _alike(self) -> Progress:
        return Progress(self._linear.size, remember_ended=self._remember_ended, tables=self._key_tables)

    def _beyond(self, expected: list[Punctuation]) -> list[Punctuation]:
        """Return as watermarks those bounds that are beyond the hard ones."""
        out = list[Punctuation]()
        for bound in expected:
            if isinstance(bound, Linear):
                if bound.below > self.linear:
                    out.append(Watermark(bound))
            elif isinstance(bound, GroupWise) and (more := bound.below > self.bounds(bound.groups)).any():
                out.append(Watermark(bound.filter(more)))
        return out

    def bounds(self, columns: pa.RecordBatch, port: int | None = None) -> Bounds:
        """Return the bound of each row's group, int64 (rows,).

        Of input ``port``, or of all together.  Attribute sets that ``columns`` does not
        have are left out of account.
        """
        linear = self.linear if port is None else self._linear[port]
        of_rows = np.full(columns.num_rows, linear, np.int64)
        for attributes, table in self._tables.items():
            if len(table) and set(attributes) <= set(columns.schema.names):
                np.maximum(of_rows, table.bounds(columns, self._linear, port), out=of_rows)
        return of_rows

    def punctuation(self) -> list[Punctuation]:
        """Return all bounds of now, in as few punctuations as possible."""
        out: list[Punctuation] = [] if self.linear == NEVER else [Linear(self.linear)]
        for table in self._tables.values():
            slots, bounds = table.all_bounds(self._linear)
            more = bounds > self.linear
            if more.any():
                out.append(table.punctuation(slots[more], bounds[more]))
        if self._expected is not None:
            out += self._beyond(self._expected.punctuation())
        return out

    @property
    def expected(self) -> int:
        """The watermark of all inputs together, or their hard bound, whichever is larger."""
        return self.linear if self._expected is None else self._expected.linear

    def expected_of(self, columns: pa.RecordBatch) -> Bounds:
        """Return the same for each row's group, int64 (rows,)."""
        return (self._expected or self).bounds(columns)

    def save(self) -> dict[str, Any]:
        """Return the bounds for a snapshot."""
        tables = [[list(names), table.save()] for names, table in self._tables.items()]
        saved = {"linear": self._linear, "linear_out": self.linear, "tables": tables}
        return saved if self._expected is None else saved | {"expected": self._expected.save()}

    def load(self, saved: Saved) -> None:
        """Restore the state that ``save`` returned."""
        inputs = self._linear.size
        self._linear, self.linear = saved.integers("linear", (inputs,)), saved.integer("linear_out")
        tables = [self._loaded(table.part(1)) for table in saved.parts("tables")]
        self._tables = {table.attributes: table for table in tables}
        self.groups = sum(map(len, tables))
        if "expected" in saved:
            self._expected = self._alike()
            self._expected.load(saved.part("expected"))
            self.groups += self._expected.groups

    def _over_groups(self, port: int, was: int) -> list[Punctuation]:
        """Return the punctuation of groups that a larger bound of an input brings; forget those that are passed."""
        out = list[Punctuation]()
        for table in self._tables.values():
            out += table.passed(port, was, self._linear, self.linear, remember_ended=self._remember_ended)
        self._tables = {names: table for names, table in self._tables.items() if len(table)}
        return out

    def _advance_groups(self, port: int, punctuation: GroupWise) -> list[Punctuation]:
        punctuation = punctuation.filter(punctuation.below > self._linear[port])
        if not len(punctuation):
            return []
        punctuation = _sorted_by_name(punctuation)  # inputs may name the same attributes in any order
        names = punctuation.attributes
        if names not in self._tables:
            self._tables[names] = self._table_of(punctuation.groups.schema)
        out, ended = self._tables[names].advance(
            port, punctuation, self._linear, self.linear, remember_ended=self._remember_ended
        )
        if ended is not None:
            self._end(names, ended)
        return out

    def _table_of(self, schema: pa.Schema) -> BoundTable | InputBounds:
        if (inputs := self._linear.size) > 1:
            return BoundTable(schema, inputs, self._key_tables)
        return InputBounds(schema, self._key_tables)

    def _loaded(self, saved: Saved) -> BoundTable | InputBounds:
        if (inputs := self._linear.size) > 1:
            return BoundTable.loaded(saved, inputs, self._key_tables)
        return InputBounds.loaded(saved, self._key_tables)

    def _end(self, names: tuple[str, ...], groups: pa.RecordBatch) -> None:
        """Forget the bounds of the parts of groups that are over."""
        for finer, table in self._tables.items():
            if groups.num_rows and set(names) < set(finer):
                table.end(groups, self._linear)


def _sorted_by_name(punctuation: GroupWise) -> GroupWise:
    names = sorted(punctuation.attributes)
    if names == list(punctuation.attributes):
        return punctuation
    return GroupWise(punctuation.groups.select(names), punctuation.below)
