"""Operator: messages in, messages out, and nothing else.

An operator does no I/O.  It has no queue, no clock, no thread and no logger: a runner
hands it messages and takes what it yields.  So one object runs under asyncio, inside a
Spark task and in a plain loop in a test.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from operator import add, sub
from typing import Any, ClassVar, Literal, NamedTuple, Self

from oop_engine.core.change import Change, OpenWindows
from oop_engine.core.errors import GraphError, SnapshotError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import EVERYTHING, FOREVER, Linear, Punctuation, Wants
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.core.snapshot import Migration, pack, unpack

__all__ = ["Emission", "Message", "Operator", "State"]

_VERSIONS = "versions of changes"
Message = Page | Punctuation | Change
Emission = tuple[int, Message]
"""An output port, and the message for it."""


class State(NamedTuple):
    """The state that an operator holds now: buffered tuples, partial aggregates, groups, bytes.

    Bytes are those of arrays, Arrow buffers and dictionaries with their free capacity, which a snapshot may change.
    """

    tuples: int = 0
    partials: int = 0
    groups: int = 0
    nbytes: int = 0

    @property
    def in_use(self) -> tuple[int, int, int]:
        """Tuples, partial aggregates and groups, which do not depend on how much room there is for more."""
        return self.tuples, self.partials, self.groups

    def __add__(self, other: State) -> State:  # type: ignore[override]  # a sum, not one after the other
        return State(*map(add, self, other))

    def __sub__(self, other: State) -> State:
        return State(*map(sub, self, other))


class Operator:
    """Base of all operators: parameters first, then schemas, then messages.

    ``__init__`` takes and checks parameters, nothing more: an operator in a graph is a
    picklable description.  ``output_schemas`` is pure and checks the parameters against the
    schemas.  A runner calls ``opened``, which copies the description and gives the copy
    its state; only opened operators get messages.  Handlers yield ``(port, message)``, and
    a runner always exhausts them before the next message.

    ``inputs`` and ``outputs`` name the ports, in order.  ``needs_order`` tells that the
    operator is an in-order one: its input must come sorted by the progressing attribute.

    Rewrites of a graph, and the cut for Spark, know no operator by its name.  They ask: ``partition_keys``,
    ``lineage``, ``keeps_order``, ``halves``, ``is_union``, ``distributes``, ``wants``,
    ``reads``, ``uses_arrival``.  Defaults are the safe answers.
    """

    inputs: tuple[str, ...] = ("in",)
    outputs: tuple[str, ...] = ("out",)
    needs_order: bool = False
    is_union: ClassVar[bool] = False
    """True: each input's tuples go out unchanged, and the minimum of the inputs' bounds (``Meld``)."""
    distributes: bool = False
    """True: the union of its outputs on several streams is its output on their union (``Filter``)."""
    makes_progress: ClassVar[bool] = False
    """True for a generator of punctuation, which stands behind a source (``Punctuate``, ``Sort``)."""
    clock_every: int | None = None
    """How often ``on_clock`` is wanted, in units of the attribute; None: never."""
    moment: int | None = None
    """Of a generator: the arrival up to which it has read, the moment of the messages it yields.

    None: at the last arrival of the pages that are yielded.
    """
    foresees: bool = False
    """True: it wants to know which pages come next (``foresee``)."""
    changing: bool = False
    """True: it takes changes while it runs (``Change``)."""
    revisions: Literal["refuses", "passes", "takes"] = "refuses"
    """How it takes a revision stream (``Schema.change``): passes changes on row by row, or takes them into account."""
    for_sinks: str = ""
    """Why its rows are for sinks alone, in a few words ("they replace earlier rows"); "": any operator may follow."""
    state_version: ClassVar[int] = 1
    """Raise it where ``save`` returns other parts or another meaning, or ``__init__`` keeps other attributes."""
    migrations: ClassVar[Mapping[int, Migration]] = {}
    """By the version whose ``save`` each takes: a function to the values that ``save`` of the next version returns."""
    waits: str | None = None
    """The output that waits for punctuation, in a few words ("results"); None: none does."""

    schemas_in: tuple[Schema, ...]
    schemas_out: tuple[Schema, ...]
    versions: dict[str, int]
    """The last version of the changes that have come, by the node that they are for; "" is this one."""

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        """Return the schema of each output; raise ``GraphError`` if the inputs do not fit."""
        return (inputs[0],) * len(self.outputs)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]] | None:
        """Return the columns by which the input may be divided among copies of the operator.

        Each entry is a key: its column on every input port.  Copies that have the tuples of
        different values of some of these keys, and all punctuation, emitted together the output of one
        operator.  None: any division will do, for nothing is kept of a tuple.  An
        empty list (the default): one operator has to see everything.
        """
        return []

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        """Return for each input port the column whose value ``column`` of an output repeats.

        None: none of that port, as far as is known (the default).  A row that may come from either
        of several ports (a union) repeats a column of each.
        """
        return (None,) * len(inputs)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        """Return whether output comes sorted by its progressing attribute if each input comes sorted by its own.

        False (the default): that is not known, so the operator is in no in-order graph.
        """
        return False

    def twin(self, inputs: tuple[Schema, ...]) -> Operator | None:
        """Return the operator that takes its place in an in-order graph, where each input comes sorted.

        None (the default): this one, if it keeps order.  The twin's output comes sorted, whatever ``keeps_order`` says.
        """
        return None

    def halves(self, inputs: tuple[Schema, ...]) -> tuple[Operator, Operator] | None:
        """Return two operators that do the same, the second behind the first; None: there are none (the default).

        The first keeps nothing of a tuple, so any number of its copies may share the input.  The second takes the
        union of their outputs, in any order; results and punctuation are those of this operator.
        """
        return None

    def uses_arrival(self) -> bool:
        """Return whether the output depends on when the input arrives (the default), and not on its order alone."""
        return True

    def wants(self, inputs: tuple[Schema, ...], downstream: Wants) -> tuple[Wants, ...]:
        """Return which punctuation of each input is of use, where downstream operators can use ``downstream``.

        The answer may be too much, never too little.  The default is everything; of an operator that passes tuples on
        (``distributes``, ``is_union``) as much as downstream operators can use, by the names its input has.
        """
        return tuple(self._wanted_of(port, inputs, downstream) for port in range(len(inputs)))

    def _wanted_of(self, port: int, inputs: tuple[Schema, ...], downstream: Wants) -> Wants:
        progressing = self.output_schemas(inputs)[0].progressing
        passes = self.distributes or self.is_union
        if not passes or self.lineage(progressing, inputs)[port] != inputs[port].progressing:
            return EVERYTHING
        if downstream.groups is None:
            return downstream
        named = (self.lineage(name, inputs)[port] for name in downstream.groups)
        return downstream._replace(groups=frozenset(name for name in named if name is not None))

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        """Return the columns of each input that the operator reads, or a downstream one.

        ``downstream``: of each output the columns that downstream operators read.  The answer may be too much,
        never too little.  The default is every column; progressing attributes and columns of changes always stay.
        """
        return tuple(frozenset(schema.names) for schema in inputs)

    def changed(self, change: Change, inputs: tuple[Schema, ...]) -> Self:
        """Return the description of the operator as it is after a change; this one is left as it is.

        Raises ``GraphError`` if it cannot change, or not in this way.
        """
        msg = (
            f"{type(self).__name__}: it cannot change while it runs; got {change}: a WindowAggregate of named "
            "windows can, with changing=True"
        )
        raise GraphError(msg)

    def written(self, change: Change) -> Change:
        """Return a change with plain values alone, to be sent or kept; ``on_change`` takes it as it was before.

        Raises ``SnapshotError`` if that cannot be.
        """
        return change

    def open(self) -> None:
        """Make the empty state; ``self.schemas_in`` and ``self.schemas_out`` are there."""

    def opened(self, *inputs: Schema) -> Self:
        """Return a copy that is ready for messages."""
        ready = copy.copy(self)
        ready.schemas_in = inputs
        ready.schemas_out = self.output_schemas(inputs)
        ready.versions = {}
        ready.open()
        return ready

    def foresee(self, port: int, pages: Sequence[Page]) -> None:
        """Announce the pages that come next from one of the sources of input ``port``, sooner or later.

        For work on many pages that costs less than on each.  Output and state are as without it.
        """

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        """Take a page from input ``port``."""
        yield 0, page

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        """Take a punctuation of input ``port``."""
        yield 0, punctuation

    def on_end(self, port: int) -> Iterator[Emission]:
        """Process the end of input ``port``: the same as the largest bound.

        When every input has ended the runner ends the outputs; no operator does.
        """
        yield from self.on_punctuation(port, Linear(FOREVER))

    def on_change(self, port: int, change: Change) -> Iterator[Emission]:
        """Take a change: for an operator behind, or for this one if it names none.

        The first copy of a version is passed on here; the others are dropped.
        """
        if self.is_new(change):
            yield from ((out, change) for out in range(len(self.outputs)))

    def is_new(self, change: Change) -> bool:
        """Return whether this is the first copy of a change, and remember it."""
        new = change.version > self.versions.get(change.operator, change.version - 1)
        if new:
            self.versions[change.operator] = change.version
        return new

    def on_clock(self, now: int) -> Iterator[Emission]:
        """Process a tick of the arrival clock at ``now`` (only if ``clock_every`` is set)."""
        yield from ()

    def state(self) -> State:
        """Return the state held now, in O(1): it is asked for after every message.

        ``nbytes``: of arrays their ``nbytes``, of Arrow data ``get_total_buffer_size()`` (``Page.held_bytes``).
        """
        return State()

    def counts(self) -> dict[str, int]:
        """Return the counts since the opening: late tuples, refused ones..."""
        return {}

    def slowest_groups(self, most: int) -> list[tuple[dict[str, Any], int]]:
        """Return the waiting groups whose own bounds are least, at most so many, each with its bound; O(groups)."""
        return []

    def open_windows(self, most: int) -> list[OpenWindows]:
        """Return the open windows of at most so many definitions; ``newest`` is known of pages since the first call."""
        return []

    def save(self) -> dict[str, Any]:
        """Return the state as plain values, arrays and record batches (see ``snapshot``)."""
        return {}

    def load(self, state: Saved) -> None:
        """Restore the state that ``save`` returned; the operator is freshly opened.

        ``state`` is a ``saved.Saved``, whose getters check what they return: it may come from anywhere.
        """

    def snapshot(self) -> bytes:
        """Return the whole state as bytes."""
        return pack(type(self).__name__, self.whole(), self.state_version)

    def whole(self) -> dict[str, Any]:
        """Return the state (``save``) with the versions of changes, as ``snapshot`` packs it."""
        state = self.save()
        return {**state, _VERSIONS: self.versions} if self.versions else state

    def restore(self, data: bytes) -> None:
        """Take over a snapshot of the same operator with the same parameters, perhaps of an older version.

        Raises ``SnapshotError`` if the bytes are something else; the operator is then as it was opened.
        """
        name = type(self).__name__
        state = unpack(name, data, self.state_version, self.migrations)
        try:
            versions = state.part(_VERSIONS) if _VERSIONS in state else Saved()
            self.versions = {name: versions.integer(name) for name in versions}
            self.load(state)
        except Exception as error:  # whatever foreign values make an operator stumble over
            self.versions = {}
            self.open()
            found = str(error) if isinstance(error, SnapshotError) else repr(error)
            msg = f"snapshot of {name}: made with other parameters, or by another version ({found})"
            raise SnapshotError(msg) from error

    def retains(self, inputs: tuple[Schema, ...]) -> str | None:
        """Return in one line the state of a key that no bound of the stream frees, and why; None: bounds free all.

        State grows with the keys that have not ended (group-wise ``FOREVER``), so ``explain`` shows the line.
        """
        return None

    def describe(self) -> str:
        """Return one line for a drawing of the graph: the name and the parameters."""
        return type(self).__name__

    def explain(self, inputs: tuple[Schema, ...]) -> str | None:
        """Return in one line which of several ways the operator goes, and why; None: there is one only."""
        return None
