"""Output: the schema of window results, and their pages.

    by columns | (window) | window_start | window_end | a column for each aggregate

``window_end`` (or ``window_start``, by ``stamp``) is the progressing attribute.  Both have the type of the attribute
the windows are on (integers become int64) and its unit.  ``window`` is the definition's name, where there are several.
Where a definition is folded in time order it names the columns of extents, and those it has before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from oop_engine.core.errors import ContractError, GraphError
from oop_engine.core.groups.in_python import values_of
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER
from oop_engine.core.registry import is_ours
from oop_engine.core.schema import Schema
from oop_engine.operators.aggregates import Aggregation, Arrays, Count, Part
from oop_engine.operators.aggregates.base import column_of
from oop_engine.operators.aggregates.wide import SumOverflowError
from oop_engine.operators.kernels.lists import words
from oop_engine.operators.kernels.slices import UNITS, needed
from oop_engine.operators.slicing.checks import MOST_WINDOWS, check_overlap
from oop_engine.operators.slicing.compiled import fixed
from oop_engine.operators.slicing.ordered.own_states import fitting, parts_of, result_type_of
from oop_engine.operators.slicing.window_states import WindowStates
from oop_engine.operators.values.columns import Integers
from oop_engine.operators.windows import Definition, Extents, Over, is_folded, is_grid
from oop_engine.operators.windows.folding import checked_tie, ties
from oop_engine.system.knobs import knob

__all__ = ["PAGE_ROWS", "WINDOW", "Output", "Stamp", "Stamps"]

Stamp = Literal["start", "end"]

PAGE_ROWS = knob(__name__, "PAGE_ROWS", 65_536)  # of results, at most
WINDOW = "window"
_LONGEST = 8191  # characters of a name, with which the letters of a page are below 2**31


class Stamps:
    """Which stamp the next results of some grids have at least, by a bound on their tuples."""

    def __init__(self, extents: Sequence[Extents], stamp: Stamp) -> None:
        self._extents, self.stamp = extents, stamp
        back = [e.range or 0 if stamp == "start" else 0 for e in extents]
        self._shape = np.array([[e.slide for e in extents], back, [e.origin for e in extents]])

    def least(self, bound: int) -> int:
        """Return the least stamp of a window that ends behind ``bound``; sentinels stay."""
        if abs(bound) < 2**61:
            if len(self._extents) == 1:
                slide, back, origin = self._shape[:, 0].tolist()
                return int(origin + ((bound - origin) // slide + 1) * slide - back)
            found = np.empty(1, np.int64)
            needed(self._shape, UNITS, np.array([bound]), found)
            return int(found[0])
        return int(self.of_each(np.array([bound]))[0]) if NEVER < bound < FOREVER else bound

    def of_window(self, wid: int) -> int:
        """Return the stamp of a window of the first grid; sentinels stay."""
        extents = self._extents[0]
        return int((extents.ends if self.stamp == "end" else extents.starts)(wid))

    def of_each(self, bounds: Integers) -> Integers:
        """Do so for many bounds."""
        stamps = []
        for extents in self._extents:
            cuts = extents.closed_by(bounds)
            stamps.append(extents.ends(cuts) if self.stamp == "end" else extents.starts(cuts))
        least: Integers = np.minimum.reduce(stamps)
        return least


class Output:
    """The form of the results of ``definitions`` (name to definition): schema, parts, and how pages are made.

    ``named``: with the column ``window``.  A definition has a number, which is its place in ``names``.
    ``grouped``: whether there is a key, and not one group alone.
    """

    def __init__(
        self, definitions: Mapping[str, Definition], aggregates: Mapping[str, Aggregation], schema: Schema,
        by: tuple[str, ...], stamp: Stamp, place: str, *, named: bool = False,
    ) -> None:  # fmt: skip
        self.place, self.stamp, self.grouped, self._by = place, stamp, bool(by), by
        self.names, self.definitions = list[str](), list[Definition]()
        self._aggregates, self._named = dict(aggregates), named
        self.add(definitions)
        self.schema = self._schema(schema, by)
        self.parts, self._of = _shared([parts_of(a, schema, place) for a in self._aggregates.values()])
        if not all(map(is_folded, self.definitions)):
            self._check_commutative()
        self.tie = _agreed_tie(self._aggregates, schema, place)
        self._ours = [is_ours(type(aggregate)) for aggregate in self._aggregates.values()]
        self._kinds = [self.schema.fields.field(name).type for name in self._aggregates]
        self._time = self.schema.type_of(self.schema.progressing)
        self._progressing = self.schema.fields.get_field_index(self.schema.progressing)

    def add(self, definitions: Mapping[str, Definition]) -> None:
        """Add definitions that come later; their results have the same columns."""
        for name, definition in definitions.items():
            grid = definition.extents
            if grid is not None and (grid.landmark or grid.overlap > 1):
                self._check(grid, f"{self.place}: {name!r}" if self._named else self.place)
        self.names += definitions
        self.definitions += definitions.values()
        self._range = np.array([(one.range or 0) if is_grid(one) else 0 for one in self.definitions])
        if (longest := max(map(len, self.names))) > _LONGEST:
            msg = f"{self.place}: names of windows must have at most {_LONGEST:,} characters; got one of {longest:,}"
            raise GraphError(msg)
        texts = [name.encode() for name in self.names]  # pa.array would load pandas, where it is installed
        self._ends = fixed(np.cumsum([0, *map(len, texts)], dtype=np.int32))
        self._letters = fixed(np.frombuffer(b"".join(texts), np.uint8))

    def add_parts(self, parts: Sequence[Part]) -> None:
        """Let partial aggregates have these parts, too; no result shows them."""
        self.parts += [part for part in parts if part not in self.parts]

    def _check(self, definition: Extents, place: str) -> None:
        """Raise ``GraphError`` if results of a grid would make no progress, or a tuple were in too many windows."""
        if self.stamp == "start" and definition.landmark:
            msg = f"{place}: landmark windows all start at the origin, that is no progress; use stamp='end'"
            raise GraphError(msg)
        check_overlap(definition, place)

    @property
    def commutative(self) -> bool:
        """Tell whether tuples may be aggregated in any order."""
        return all(one.commutative for one in self._aggregates.values())

    @property
    def aggregated(self) -> int:
        """How many aggregates there are: the last columns of a result."""
        return len(self._aggregates)

    @property
    def counted(self) -> bool:
        """Tell whether a result has the number of its tuples: with another one it is another."""
        return Count() in self._aggregates.values()

    def _check_commutative(self) -> None:
        """Raise ``GraphError`` for an aggregate that depends on the order of its tuples, which come in any."""
        for name, aggregate in self._aggregates.items():
            if not aggregate.commutative:
                msg = (
                    f"{self.place}: {name!r} is not commutative, so all windows must be folded in order, which only "
                    "WindowAggregate does, and not for a Merging of your own, whose windows follow from tuples in any "
                    "order: take windows of the library, or a Folding, there"
                )
                raise GraphError(msg)

    def moments(self) -> Iterator[str]:
        """Yield for each user-defined aggregate when its tuples are folded, and for others if their order matters."""
        held = any(map(is_folded, self.definitions))
        for (name, aggregate), part_numbers in zip(self._aggregates.items(), self._of, strict=True):
            if aggregate.depends_on_order:
                yield f"{name!r} depends on the order of arrival, within its error"
            if any(self.parts[i].user is not None for i in part_numbers):
                when = "folded as they come, in any order"
                if held:
                    when = "held where windows follow from their order"
                if not aggregate.commutative:
                    when = f"held until a bound has passed them, {ties(self.tie)}"
                yield f"{name!r} is {'' if aggregate.commutative else 'not '}commutative: tuples are {when}"

    def _schema(self, schema: Schema, by: tuple[str, ...]) -> Schema:
        if len(kinds := {one.over for one in self.definitions}) > 1:
            msg = (
                f"{self.place}: windows must all be over {schema.progressing!r}, or over the same rows, for "
                f"results have one progressing attribute; got {', '.join(map(repr, self.names))}: use two operators"
            )
            raise GraphError(msg)
        rows, time = kinds != {Over.ATTRIBUTE}, schema.type_of(schema.progressing)
        time = time if not rows and pa.types.is_timestamp(time) else pa.int64()
        fields = [(name, schema.type_of(name)) for name in by]
        fields += [(WINDOW, pa.string())] if self._named else []
        more, sides = self._columns(schema)
        fields += more + [(side, time) for side in sides]
        fields += [(name, result_type_of(a, schema, self.place)) for name, a in self._aggregates.items()]
        names = [name for name, _ in fields]
        if twice := sorted(name for name, many in Counter(names).items() if many > 1):
            if WINDOW in twice:
                msg = f"{self.place}: the column {WINDOW!r} is the definition's name; got another one: rename it"
                raise GraphError(msg)
            msg = f"{self.place}: output columns must differ; got {', '.join(twice)} twice: rename one"
            raise GraphError(msg)
        return Schema(pa.schema(fields), sides[self.stamp == "end"], "rows" if rows else schema.unit)

    def _columns(self, schema: Schema) -> tuple[list[tuple[str, pa.DataType]], tuple[str, str]]:
        """Return the columns before extents, and the names of these; they must be the same for all definitions."""
        found = [(one.more(schema), one.sides) for one in self.definitions]
        for name, columns in zip(self.names, found, strict=True):
            if columns != found[0]:
                more, sides = ([*dict(some), *ends] for some, ends in (found[0], columns))
                msg = (
                    f"{self.place}: results of one operator have the same columns; those of {self.names[0]!r} have "
                    f"{', '.join(more)}, those of {name!r} {', '.join(sides)}: use two operators"
                )
                raise GraphError(msg)
        return found[0]

    def overflow(
        self, column: str | None, start: int, end: int, keys: Mapping[str, pa.Array]
    ) -> ContractError:
        """Return the error that a sum passed 64 bits, or 38 digits, in the window ``[start, end)`` of a group."""
        group = {name: values_of(key[:1])[0] for name, key in keys.items()}
        sums = {
            i for i, p in enumerate(self.parts) if p.column == column and p.kind in ("carried", "checked")
        }
        decimal = any(pa.types.is_decimal(kind) for i in sums for kind in self.parts[i].types)
        msg = (
            f"{self.place}: Sum({column!r}) must fit {'38 digits' if decimal else '64 bits'}; it does not in window "
            f"[{start}, {end}){f' of group {group}' if group else ''}: cast the column to float64 before"
        )
        return ContractError(msg)

    def gap(self, extents: Extents, low: int, stop: int, keys: Mapping[str, pa.Array]) -> ContractError:
        """Return the error that windows ``low`` to ``stop`` (exclusive) of a group are too many without a tuple."""
        first, last = extents.extent(np.array([low, stop - 1]))[1].tolist()
        named = f" of group { {name: values_of(key[:1])[0] for name, key in keys.items()} }" if keys else ""
        msg = (
            f"{self.place}: one punctuation may complete at most {MOST_WINDOWS:,} windows without a tuple; got "
            f"{stop - low:,}{named}, which end from {first} to {last}, every {extents.slide} {self.schema.unit}: if "
            "one clock is wrong, put a Guard in front to turn its tuples away; else take a longer slide"
        )
        return ContractError(msg)

    def ordered(self, found: Sequence[WindowStates]) -> WindowStates:
        """Return windows by end, then definition, then group; ``found`` is not empty."""
        if len(found) > 1 and any(some.starts is not None for some in found):
            found = [some._replace(starts=self.starts(some)) for some in found]
        return WindowStates.ordered(found)

    def pages(self, keys: Sequence[pa.Array], found: WindowStates) -> Iterable[Page]:
        """Return the results of windows, with their keys (n,), made as they are asked for."""
        return map(self._page, self.columns(keys, found))

    def columns(self, keys: Sequence[pa.Array], found: WindowStates) -> Iterable[list[pa.Array]]:
        """Return the columns of these pages."""
        if (rows := found.ends.size) > PAGE_ROWS:
            parts = (slice(lo, lo + PAGE_ROWS) for lo in range(0, rows, PAGE_ROWS))
            return (one for p in parts for one in self.columns([key[p] for key in keys], found.take(p)))
        named = [self._name(found)] if self._named else []
        sides = column_of(self.starts(found), self._time), column_of(found.ends, self._time)
        return (self._with_results([*keys, *named, *found.more, *sides], found.states),)

    def starts(self, found: WindowStates) -> Integers:
        """Return where windows start."""
        return found.ends - self._range[found.number] if found.starts is None else found.starts

    def _name(self, found: WindowStates) -> pa.Array:
        if isinstance(found.number, int):
            return pa.repeat(pa.scalar(self.names[found.number], pa.string()), found.ends.size)
        ends = np.empty(found.number.size + 1, np.int32)
        letters = words(self._ends, self._letters, fixed(found.number), ends)
        return pa.StringArray.from_buffers(ends.size - 1, pa.py_buffer(ends), pa.py_buffer(letters))

    def made(self, columns: list[pa.Array], states: Sequence[Arrays]) -> Page:
        """Return a page of keys and extents, ``columns``, with the aggregates behind."""
        return self._page(self._with_results(columns, states))

    def _with_results(self, columns: list[pa.Array], states: Sequence[Arrays]) -> list[pa.Array]:
        """Return columns with the aggregates behind."""
        results = list[pa.Array]()
        own = self._aggregates.values(), self._kinds, self._of, self._ours
        for aggregate, kind, parts, ours in zip(*own, strict=True):
            try:
                found = aggregate.result(list(map(states.__getitem__, parts)), kind)
                about = aggregate, kind, len(columns[-1]), self.place
                results.append(found if ours else fitting(found, *about))
            except SumOverflowError as error:
                start, end = (side[error.at].cast(pa.int64()).as_py() for side in columns[-2:])
                keys = {name: key[error.at :] for name, key in zip(self._by, columns, strict=False)}
                raise self.overflow(error.column, start, end, keys) from None
        return columns + results

    def _page(self, columns: list[pa.Array]) -> Page:
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema.fields)
        return Page(self.schema, batch, _progressing=columns[self._progressing])


def _agreed_tie(aggregates: Mapping[str, Aggregation], schema: Schema, place: str) -> tuple[str, ...]:
    """Return the columns by which aggregates order tuples of one time; raise ``GraphError`` if they do not agree."""
    given = {name: one.tie for name, one in aggregates.items() if not one.commutative}
    if len(set(given.values())) > 1:
        words = ", ".join(f"{name!r} {list(tie)}" for name, tie in given.items())
        msg = f"{place}: aggregates of one operator must have the same tie; got {words}: use two operators"
        raise GraphError(msg)
    return checked_tie(next(iter(given.values()), ()), schema, f"{place}: {next(iter(given), None)!r}")


def _shared(parts: Sequence[tuple[Part, ...]]) -> tuple[list[Part], list[list[int]]]:
    """Return the parts that differ, and which of them each aggregate is made of."""
    place: dict[Part, int] = {}
    numbers = [[place.setdefault(part, len(place)) for part in some] for some in parts]
    return list(place), numbers
