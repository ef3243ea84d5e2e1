"""OA-Join: a window join that matches tuples on arrival, in whatever order they come.

Both inputs are kept by key and time; a tuple is looked up on the other side, then stored
on its own.  Nothing waits for order: punctuation alone purges the state.

    Pass       inner       each joined tuple, as soon as the later of its two tuples has come.
               left, full  the same, and a left tuple (full: a right one as well) that has matched
                           nothing, with nulls, when it is purged; at once if it comes when all
                           its partners have been there, or has a null key.
               semi        a left tuple at its first match; anti: one that has none, when it is purged.
               speculative: a tuple that would leave if the watermarks were punctuation leaves then, and
                           is retracted at a match that comes all the same; as-of: pairs at once, too.
    Keep       a left tuple while the right input's bound <= ts + after, a right one while the
               left input's bound <= ts + before; tumbling: while the bound's window is not
               later than the tuple's.  The bound is that of the tuple's own key where
               group-wise punctuation on key columns is ahead.  A tuple that can match nothing
               later is never stored; nor are null keys, which match nothing.  Semi and anti: a left
               tuple is not kept behind its first match.  ``AsOf()`` without ``within``: the newest right
               tuple of each key until the key ends, for any later left tuple matches it.
    Propagate  left time   min(bL, bR - after): linear, and group-wise for each key
               right time  min(bR, bL - before), as a Joint of that single attribute
               both times  Joint of bL and bR, while their corner is in the band
               (tumbling: the start of the bound's window instead of bR - after, bL - before).
               Tuples without a match leave before the punctuation that follows from their purging, so
               all kinds promise the same.  full: linear and group-wise on ``time``, the earlier of
               both: min(bL, bR - after, bR, bL - before).  semi, anti: on left time alone.
               Each only when it has grown; joint punctuation of the inputs is dropped.
    Cost       O(log n) a tuple, however skewed the keys; O(1) a match, O(1) a tuple purged; a
               group-wise punctuation O(its groups), on some of the key columns O(tuples kept).
               Payload is copied as it comes and for matches (in a large page a column when it is read), and
               where a fifth of a run, or of all that is kept, has gone.
               Order needed: none.
    Source     J. Li, "Window Queries over Data Streams", 7.1 and 7.2, with errata: the ranges
               of fig. 7-1, floor in fig. 7-2, "and" in fig. 7-3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError
from oop_engine.core.groups.zeros import with_unsigned_zeros, zeros_in_keys
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER, Joint, Linear, Punctuation, Wants
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.bands import AsOf, Bands
from oop_engine.operators.joining.speculative import CHANGE, join_state
from oop_engine.operators.joining.terms import JoinTerms, Residual, key_columns
from oop_engine.operators.ordering.due_rows import DueRows, check_flush
from oop_engine.operators.revisions.joined import joined_changes, with_changes
from oop_engine.operators.values.describe_value import describe_value
from oop_engine.operators.values.flush import Flush

__all__ = ["OAJoin"]

_KINDS = ("individual", "joint", "both")


@checked_arguments
class OAJoin(Operator):
    """Join tuples with equal ``keys`` whose timestamps are in the ``band``.

    ``keys``: pairs (left column, right column) of one Arrow type each; none: a pure band
    join.  Null equals nothing; NaN equals NaN.  ``residual``: a ``pyarrow.compute``
    expression over the joined columns, or a function from the joined record batch (rows,)
    to a boolean array or NumPy mask (rows,); null is no match.
    ``how``: ``"inner"``: pairs; ``"left"``: and left tuples that match nothing, with nulls on the
    right; ``"full"``: and right ones likewise, in a stream whose progressing attribute is the new
    column ``time``, the earlier of both; ``"semi"``: left tuples that match something, once;
    ``"anti"``: those that match nothing.  (For a right join exchange the inputs.)  Columns that may
    be null for want of a match can make no progress.
    ``punctuation``: the kinds that go out: ``"individual"`` on either timestamp,
    ``"joint"`` on both together, or ``"both"``.
    ``flush``: ``Slow(every, within)`` spreads the rows that a punctuation lets go (tuples that match nothing, and all
    of an ``AsOf`` band) over the messages that follow: one for each ``every`` tuples, at least one a message, all
    before the ``within``-th punctuation behind that lets some go is answered.  The bound stays at the earliest of them.
    ``speculative``: of a left, full or anti join a tuple that has matched nothing leaves when the watermark of the
    other side has passed all its partners.  A match that comes late retracts it (change -1).  The output is a
    revision stream, with the column ``change`` behind the others, and final behind punctuation; without watermarks its
    rows leave as those of the plain join do.  With an ``AsOf`` band, of an inner join too, a left tuple leaves at once
    with the latest right one that is there; when a later one comes, the pair is retracted, and the new one emitted.
    Not with ``flush``.
    The output has all left columns, then all right ones, with ``suffix`` where a name is
    taken (semi, anti: left ones alone); the left progressing attribute stays the progressing one.
    Raises ``GraphError`` if columns, types or units do not fit, or the residual is no predicate.

    >>> s = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
    >>> from oop_engine.operators import Band
    >>> join = OAJoin(keys=[("k", "k")], band=Band(before=0, after="2 s")).opened(s, s)
    >>> list(join.on_page(0, Page.of(s, {"ts": [7, 5], "k": ["a", "b"]})))
    []
    >>> [(_, page)] = join.on_page(1, Page.of(s, {"ts": [8, 8], "k": ["a", "b"]}))
    >>> page.to_pylist()
    [{'ts': 7, 'k': 'a', 'ts_right': 8, 'k_right': 'a'}]

    >>> from oop_engine import Watermark
    >>> from oop_engine.testing import Driver
    >>> lone = Driver(OAJoin([("k", "k")], Band(0, 2), how="anti", speculative=True), s, s)
    >>> for port, message in [(0, [7]), (1, Watermark(Linear(20))), (1, [8])]:
    ...     page = Page.of(s, {"ts": message, "k": ["a"]}) if isinstance(message, list) else message
    ...     emissions = lone.feed(port, page)
    >>> [(row["ts"], row["change"]) for row in lone.rows()]
    [(7, 1), (7, -1)]
    """

    inputs = ("left", "right")
    waits = "every tuple is kept"

    def __init__(
        self,
        keys: Sequence[str | tuple[str, ...]] | str,
        band: Bands,
        *,
        residual: Residual | None = None,
        punctuation: str = "individual",
        suffix: str = "_right",
        how: str = "inner",
        flush: Flush | None = None,
        speculative: bool = False,
    ) -> None:
        if punctuation not in _KINDS:
            msg = f"OAJoin: punctuation must be one of {', '.join(_KINDS)}; got {punctuation!r}"
            msg += did_you_mean(punctuation, _KINDS)
            raise GraphError(msg)
        self.terms = JoinTerms(
            "OAJoin", key_columns(keys, self.inputs, "OAJoin"), band, residual, suffix, how
        )
        if punctuation != "individual" and not self.terms.kind.pairs:
            msg = f"OAJoin: how={how!r} has no right time, so punctuation must be 'individual'; got {punctuation!r}"
            raise GraphError(msg)
        self.punctuation = punctuation
        self.flush = check_flush(flush, "OAJoin")
        if self.flush is not None and not (any(self.terms.kind.alone) or isinstance(band, AsOf)):
            msg = f"OAJoin: flush is for rows that wait for punctuation, which are none of how={how!r}; got {flush!r}"
            raise GraphError(msg)
        self.speculative = self._checked_speculative(speculative)
        self.revisions = "takes" if how == "inner" and not isinstance(band, AsOf) else "refuses"

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The key columns, a left and a right one each."""
        return self.terms.keys

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        left, right = inputs
        joined = self.terms.output_schema(left, right)
        if self.speculative:
            return (self._with_change(joined),)
        return (joined_changes(joined, left, right, self.terms.right_names(left, right)),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return list(self.terms.keys)

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        return self.terms.retains()

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        return self.terms.lineage(column, *inputs)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return self.terms.reads(downstream[0], *inputs)

    def wants(self, inputs: tuple[Schema, ...], downstream: Wants) -> tuple[Wants, ...]:
        groups = [frozenset(key[port] for key in self.terms.keys) for port in range(2)]
        watermarks = downstream.watermarks or self.speculative
        return tuple(Wants(1, group, watermarks=watermarks) for group in groups)

    def open(self) -> None:
        joined = self.terms.output_schema(*self.schemas_in)
        self._changes = [name for name in joined.names if name not in self.schemas_out[0].names]
        late = None if self._changes else self.schemas_out[0]
        self._held = join_state(self.terms, self.schemas_in, speculative=self.speculative, late=late)
        self.foresees = self._held.foresees
        self._zeros = zeros_in_keys(self.schemas_in, self.terms.keys)
        self._due = None if self.flush is None else DueRows(self.schemas_out[0], self.flush)
        self._right_time = self.terms.right_progressing(*self.schemas_in)
        self._right_out = NEVER
        self._box_out = [NEVER, NEVER]

    def foresee(self, port: int, pages: Sequence[Page]) -> None:
        self._held.foresee(port, pages)

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        answer = self._of_page(port, with_unsigned_zeros(page, self._zeros[port]))
        return answer if self._due is None else self._asked(self._due.behind_page(answer, len(page)))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        answer = self._of_punctuation(port, punctuation)
        return self._asked(answer if self._due is None else self._due.behind_punctuation(answer))

    def _asked(self, emissions: Iterator[Emission]) -> Iterator[Emission]:
        """Leave out individual punctuation if joint is asked for; rows that were due have left by it."""
        if self.punctuation != "joint":
            return emissions
        return (emission for emission in emissions if isinstance(emission[1], Page | Joint))

    def _of_page(self, port: int, page: Page) -> Iterator[Emission]:
        for joined in self._held.arrive(port, self._held.bounds.timely(port, page)):
            if isinstance(joined, Page):
                yield 0, joined
            else:
                yield 0, Page(self.schemas_out[0], with_changes(joined, self.schemas_out[0], self._changes))

    def _of_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        for out in self._held.advance(port, punctuation):
            if isinstance(out, pa.RecordBatch):
                yield 0, Page(self.schemas_out[0], out)
            else:
                yield 0, out
        if not isinstance(punctuation, Linear) or not self.terms.kind.pairs:
            return
        if self.punctuation != "joint":
            yield from self._on_right_time()
        if self.punctuation != "individual":
            yield from self._on_both_times()

    def state(self) -> State:
        state = self._held.state()
        return state if self._due is None else state + State(tuples=len(self._due), nbytes=self._due.nbytes)

    def counts(self) -> dict[str, int]:
        return {"behind": self._held.bounds.behind}

    def save(self) -> dict[str, Any]:
        saved = {"held": self._held.save(), "right_out": self._right_out, "box_out": self._box_out}
        return saved if self._due is None else saved | {"due": self._due.save()}

    def load(self, state: Saved) -> None:
        self._held.load(state.part("held"))
        self._right_out, box = state.integer("right_out"), state.part("box_out")
        self._box_out = [box.integer(0), box.integer(1)]
        if self._due is not None:
            self._due.load(state.part("due"))

    def describe(self) -> str:
        flush = "" if self.flush is None else f", {describe_value(self.flush)}"
        return f"OAJoin {self.terms}{', speculative' if self.speculative else ''}{flush}"

    def _checked_speculative(self, speculative: bool) -> bool:
        kind = self.terms.kind
        waits = any(kind.alone) or isinstance(self.terms.band, AsOf)
        if speculative and (not waits or self.flush is not None):
            got = f"how={kind.name!r}, {self.terms.band}" + (", flush" if self.flush is not None else "")
            needed = "speculative is for left, full, anti and as-of joins, without flush"
            msg = f"OAJoin: {needed}; got {got}: leave it out, for the rows are final then"
            raise GraphError(msg)
        return bool(speculative)

    def _with_change(self, joined: Schema) -> Schema:
        if CHANGE in joined.names:
            msg = f"OAJoin: speculative adds the column {CHANGE!r}; got one of that name: rename it with a Project"
            raise GraphError(msg)
        fields = joined.fields.append(pa.field(CHANGE, pa.int8()))
        return Schema(fields, joined.progressing, joined.unit, CHANGE)

    def _on_right_time(self) -> Iterator[Emission]:
        _, bound = self._held.bounds.rule.output_bounds(*self._held.bounds.linear)
        if bound > self._right_out:
            self._right_out = bound
            yield 0, Joint(((self._right_time, bound),))

    def _on_both_times(self) -> Iterator[Emission]:
        box = list(self._held.bounds.linear)
        if box != self._box_out and self._held.bounds.rule.meets(*box):
            self._box_out = box
            names = (self.schemas_in[0].progressing, self._right_time)
            yield 0, Joint(tuple(sorted(zip(names, box, strict=True))))
