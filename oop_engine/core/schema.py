"""Schema: the columns of a stream, and which of them makes progress.

The progressing attribute (thesis ch. 4) is an integer or a timestamp column whose value
eventually passes every bound: event time, a sequence number, an odometer.  Windows and
punctuation are on this attribute; its unit gives lengths their meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import ContractError, GraphError, UnitError
from oop_engine.core.graphs.html import table_html
from oop_engine.core.late.packing import Packing
from oop_engine.core.units import TIME_UNITS, Clock, Length, dated, instant, to_units
from oop_engine.core.values.kinds import plain_type
from oop_engine.core.values.length_texts import PER_SECOND, time_word
from oop_engine.core.values.moments import moment_in

__all__ = ["NULL_UNMATCHED", "Schema"]

_MOST = 2**63 - 1
NULL_UNMATCHED = {"unmatched": "null"}
"""Metadata of a column that an outer join has made nullable: no progress can be made by it."""


@dataclass(frozen=True)
class Schema:
    """Columns of a stream (``fields``), its progressing attribute, and the attribute's unit.

    ``change`` names the int8 column of a *revision stream*: a row with +1 is emitted, one with -1 retracts an equal
    row (all other columns are the same, the time too).  So punctuation holds for changes as well: rows below a bound
    are final.

    ``fields`` may be given as a ``pyarrow.Schema`` or a mapping from names to types; views of texts and
    runs of values are made plain (``plain``).  A
    timestamp column brings its unit; an integer column needs one (``"s"``, ``"ms"``,
    ``"us"``, ``"ns"`` for time; any other word is a unit of its own, such as ``"rows"``).
    Raises ``GraphError`` if the attribute is missing, of another type, or has no unit, and for an unknown zone.

    >>> import pyarrow as pa
    >>> Schema({"ts": pa.timestamp("ms"), "len": pa.int32()}, progressing="ts").unit
    'ms'
    """

    fields: pa.Schema
    progressing: str
    unit: str = ""
    change: str | None = None

    def __init__(
        self, fields: pa.Schema | Mapping[str, pa.DataType], progressing: str, unit: str = "", change: str | None = None
    ) -> None:  # fmt: skip
        if not isinstance(fields, pa.Schema):
            fields = _typed(fields)
        plain = [field.with_type(plain_type(field.type)) for field in fields]
        object.__setattr__(self, "fields", pa.schema(plain))
        self._check_zones()
        object.__setattr__(self, "progressing", progressing)
        object.__setattr__(self, "unit", self._checked_unit(unit))
        object.__setattr__(self, "change", self._checked_change(change))

    def _check_zones(self) -> None:
        for field in self.fields:
            if pa.types.is_timestamp(field.type) and field.type.tz:
                try:
                    pa.scalar(0, field.type).as_py()
                except (LookupError, ValueError) as error:
                    msg = f"schema: {field.name!r} is {field.type}, a zone that is not known here: cast it to 'UTC'"
                    raise GraphError(msg) from error

    def _repr_html_(self) -> str:
        """Return the columns as a table, for a notebook."""
        marks = [{"column": f.name, "type": str(f.type), "": self._mark(f.name)} for f in self.fields]
        return table_html("Schema", ["column", "type", ""], marks)

    def _checked_change(self, change: str | None) -> str | None:
        if change is not None and (change not in self.names or self.type_of(change) != pa.int8()):
            got = (
                self.type_of(change)
                if change in self.names
                else f"no column {change!r}{did_you_mean(change, self.names)}"
            )
            msg = f"schema: change must be a column of int8, +1 and -1; got {got}"
            raise GraphError(msg)
        return change

    def _mark(self, name: str) -> str:
        if name == self.change:
            return "emits a row (+1) or retracts it (-1)"
        return f"makes progress, in {self.unit}" if name == self.progressing else ""

    def _checked_unit(self, unit: str) -> str:
        if len(set(self.names)) != len(self.names):
            msg = f"schema: column names must differ; got {self.names}"
            raise GraphError(msg)
        if self.progressing not in self.names:
            msg = f"schema: progressing attribute {self.progressing!r} is not a column of {self.names}"
            raise GraphError(msg)
        if b"unmatched" in (self.fields.field(self.progressing).metadata or {}):
            msg = (
                f"schema: {self.progressing!r} is null where a join found no match, so it makes no progress: "
                "keep the join's own attribute, or join with how='inner'"
            )
            raise GraphError(msg)
        kind = self.type_of(self.progressing)
        if pa.types.is_timestamp(kind):
            if unit not in ("", kind.unit):
                msg = (
                    f"schema: {self.progressing!r} is {kind}, so its unit is {kind.unit!r}; got unit={unit!r}"
                )
                raise GraphError(msg)
            return str(kind.unit)
        if not pa.types.is_integer(kind):
            got = f"got {kind}: cast it before"
            msg = (
                f"schema: progressing attribute {self.progressing!r} must be an integer or a timestamp; {got}"
            )
            raise GraphError(msg)
        if not unit:
            msg = f"schema: integer attribute {self.progressing!r} needs a unit; give unit='ms', 'rows', ..."
            raise GraphError(msg)
        if unit not in TIME_UNITS and len(unit) > 1 and (meant := time_word(unit)) is not None:
            msg = f"schema: {self.progressing!r} has the unit {unit!r}, which is a word for a time: {_time_unit(meant)}"
            raise GraphError(msg)
        return unit

    @cached_property
    def times_are_int64(self) -> bool:
        """Whether the progressing attribute has 64 bits and a sign, as instants have: a view of it will do."""
        kind = self.type_of(self.progressing)
        return bool(kind.bit_width == 64 and not pa.types.is_unsigned_integer(kind))

    @cached_property
    def columns(self) -> list[tuple[str, pa.DataType, bool, str]]:
        """Name and type of each column, whether it may be null, and its place in the errors of a page."""
        return [(field.name, field.type, field.nullable, f"page: {field.name!r}") for field in self.fields]

    @cached_property
    def packing(self) -> Packing | None:
        """How one row is packed; None: a column is of another type than those of which that can be done."""
        return (
            Packing(dict(zip(self.names, self.fields.types, strict=True)))
            if Packing.fits(self.fields.types)
            else None
        )

    @property
    def names(self) -> list[str]:
        """Column names, in order."""
        return list(self.fields.names)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.fields.names)

    def type_of(self, name: str) -> pa.DataType:
        """Return the Arrow type of column ``name``."""
        return self.fields.field(name).type

    def check_page(self, schema: Schema, place: str) -> None:
        """Raise ``ContractError`` in the name of ``place`` if a page of it is not of this schema."""
        if schema is self or schema == self:
            return
        lacking = [name for name in self.names if name not in schema._known]
        lacks = f"it lacks {', '.join(map(repr, lacking))}: " if lacking else ""
        way_out = f"{lacks}yield Page(self.schemas_out[port], ...)"
        msg = f"{place}: a page must have the announced schema {self}; got {schema}: {way_out}"
        raise ContractError(msg)

    def has(self, names: Iterable[str]) -> bool:
        """Return whether every one of ``names`` is a column."""
        return self._known.issuperset(names)

    def require(self, names: Iterable[str], place: str) -> None:
        """Raise ``GraphError`` in the name of ``place`` unless all of ``names`` are columns."""
        for name in names:
            given: object = name
            if not isinstance(given, str):
                msg = f"{place}: a column is given by its name, a text; got {name!r}: make it a column, by WithColumns"
                raise GraphError(msg)
            if name not in self._known:
                hint = did_you_mean(name, self.names)
                msg = f"{place}: no column {name!r} in its input; there are {', '.join(self.names)}{hint}"
                raise GraphError(msg)

    def length(self, length: Length, place: str) -> int:
        """Return ``length`` in units of the progressing attribute (see ``units.to_units``)."""
        units = to_units(length, self.unit, place)
        if not -_MOST <= units <= _MOST:
            msg = f"{place} must fit 64 bits in {self.unit!r}; got {length!r}: take a shorter one"
            raise UnitError(msg)
        return units

    def instant(self, value: Length | datetime, place: str) -> int:
        """Return a value of the progressing attribute in its unit: a moment, or as ``length`` takes it.

        A moment is a ``datetime``, NumPy's ``datetime64`` or pandas's ``Timestamp``, in a zone if the attribute is in
        one, and else in none.  Raises ``GraphError`` in the name of ``place``.

        >>> Schema({"at": pa.timestamp("ms")}, "at").instant(datetime(1970, 1, 1, 0, 1), "origin")
        60000
        """
        kind = self.type_of(self.progressing)
        try:
            moment = moment_in(value, kind, self.unit)
            return self.length(value, place) if moment is None else moment  # type: ignore[arg-type]
        except UnitError as error:
            hint = "; write a moment as a datetime" if pa.types.is_timestamp(kind) else ""
            msg = f"{error}{hint}"
            raise UnitError(msg) from None
        except ValueError as error:
            msg = f"{place} must be {error}"
            raise GraphError(msg) from error

    @property
    def clock(self) -> Clock:
        """The kind of the progressing attribute: a number, or a timestamp in a zone or in none (``units.instant``)."""
        kind = self.type_of(self.progressing)
        if not pa.types.is_timestamp(kind):
            return "number"
        return "utc" if kind.tz else "local"

    def moment(self, value: int) -> str:
        """Return a value of the progressing attribute as text (``units.instant``)."""
        return instant(value, self.unit, self.clock)

    def in_json(self, value: int) -> str | int:
        """Return a value of the progressing attribute for JSON: a moment as RFC 3339 has it, or else the number."""
        return dated(value, self.unit, self.clock) or value

    def select(self, names: list[str]) -> Schema:
        """Return the schema of some of the columns; the progressing attribute must stay."""
        fields = pa.schema([self.fields.field(n) for n in names])
        return Schema(fields, self.progressing, self.unit, self.change)

    def plain(self) -> Schema:
        """Return the schema without the column of changes."""
        if self.change is None:
            return self
        fields = pa.schema([field for field in self.fields if field.name != self.change])
        return Schema(fields, self.progressing, self.unit)

    def __reduce__(self) -> tuple[type[Schema], tuple[pa.Schema, str, str, str | None]]:
        return (Schema, (self.fields, self.progressing, self.unit, self.change))

    def __str__(self) -> str:
        marks = (f"{f.name}{'+' if f.name == self.progressing else ''}: {f.type}" for f in self.fields)
        changes = "" if self.change is None else f"; changes {self.change}"
        return f"({', '.join(marks)}; unit {self.unit}{changes})"


def _time_unit(meant: str) -> str:
    if meant in TIME_UNITS:
        return f"write unit={meant!r}, so that lengths such as '5 min' are understood"
    seconds = int(1 / PER_SECOND[meant])
    return f"times are in 's', 'ms', 'us' or 'ns': multiply by {seconds:,} and write unit='s'"


def _typed(fields: Mapping[str, pa.DataType]) -> pa.Schema:
    try:
        return pa.schema(list(fields.items()))
    except (AttributeError, TypeError, ValueError) as error:
        msg = f"schema: columns must be names with types, such as {{'ts': pa.int64()}}; got {fields!r}"
        raise GraphError(msg) from error
