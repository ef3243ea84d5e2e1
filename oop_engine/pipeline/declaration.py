"""Declaration: the user's description of raw events, in a TOML file; everything is checked before anything starts.

    [columns]    the columns of the files, and their types
    [computed]   further columns, as expressions over those above (``expression``)
    [refuse]     which rows are no events: reason = condition, an expression
    [stream]     which column is the time, the arrival, the source, the group, and which columns are kept
    [csv]        how CSV files are written: the options of ``CsvFormat``
    [run]        the file of the graph, a policy, how results are divided

A Python file may have the same: ``DECLARATION = {"columns": {...}, "stream": {...}}``.
"""

from __future__ import annotations

import re
import tomllib
import zoneinfo
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, NoReturn

from oop_engine.core.close_names import closest_or_all
from oop_engine.core.errors import UsageError
from oop_engine.core.units import TIME_UNITS
from oop_engine.pipeline.expression import checked
from oop_engine.system.python_file import load_file
from oop_engine.traces.csv_format import CsvFormat, high_texts

__all__ = ["FORMATS", "SPARK_TYPES", "Column", "Declaration", "load_declaration", "unreadable"]

FORMATS = ("csv", "json", "parquet")
SPARK_TYPES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float32": "float",
    "float64": "double", "string": "string", "bool": "boolean", "date32": "date", "timestamp": "timestamp",
}  # fmt: skip
"""The types that a column can be declared as, and their names in Spark."""

_USUAL = CsvFormat(delimiter=",", header=True)
_INTEGERS = ("int8", "int16", "int32", "int64")
_INSTANTS = ("s", "ms", "us")  # Spark keeps microseconds
_NAME = re.compile(r"[A-Za-z]\w*")
_LISTS = ("dates", "nulls", "names")
_KEYS = {
    "": ("name", "format", "columns", "computed", "refuse", "stream", "csv", "run"),
    "stream": ("time", "unit", "arrival", "source", "by", "keep"),
    "csv": tuple(option.name for option in fields(CsvFormat)),
    "run": ("graph", "policy", "partition"),
    "columns": ("type", "format", "zone", "required"),
}


@dataclass(frozen=True)
class Column:
    """A column of the files.

    ``format``: how a timestamp is written, as a pattern of Spark (``dd/MM/yyyy HH:mm``); "": ISO 8601.
    ``zone``: the time zone of timestamps that carry none.  ``required``: a row without it is refused.
    """

    type: str
    format: str = ""
    zone: str = "UTC"
    required: bool = False


@dataclass(frozen=True)
class Declaration:
    """A description of raw events; see the module.  ``path``: the file of it."""

    path: Path
    columns: Mapping[str, Column]
    time: str
    name: str = "events"
    format: str = "csv"
    unit: str = ""
    arrival: str | None = None
    source: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
    refuse: Mapping[str, str] = field(default_factory=dict)
    csv: CsvFormat = _USUAL
    graph: str = ""
    policy: str = ""
    partition: str = ""

    @property
    def stream(self) -> tuple[str, ...]:
        """The columns of the stream: those kept, and the time."""
        return self.keep if self.time in self.keep else (self.time, *self.keep)

    @property
    def graph_file(self) -> Path | None:
        """The file that has the function ``graph``, if one is named or this is a Python file itself."""
        if self.graph:
            return self.path.parent / self.graph
        return self.path if self.path.suffix == ".py" else None

    def expression(self, table: Literal["computed", "refuse"], name: str) -> str:
        """Return an expression as Spark is to get it; raises ``UsageError`` for one that is not allowed."""
        computed = [*self.computed]
        above = computed[: computed.index(name)] if table == "computed" else computed
        text: str = getattr(self, table)[name]
        return checked(text, [*self.columns, *above], self.place(table, name))

    def place(self, table: str, name: str) -> str:
        """Return the place of an expression, the start of an error about it."""
        return f"{self.path}: [{table}] {name if _NAME.fullmatch(name) else repr(name)}"

    def of_rows(self) -> dict[str, Any]:
        """Return the settings that decide how rows are read, as plain values."""
        shown = {name: vars(column) for name, column in self.columns.items()}
        rest = {k: v for k, v in vars(self).items() if k not in ("path", "graph", "policy", "partition")}
        tables = {"columns": shown, "computed": dict(self.computed), "refuse": dict(self.refuse)}
        return rest | tables | {"csv": vars(self.csv)}


def unreadable(name: str, column: Column) -> str:
    """Return why a row is in quarantine whose cell is no value of its column."""
    return f"{name}: cannot be read as {column.type}"


def load_declaration(path: str | Path) -> Declaration:
    """Return the declaration in a file.

    Raises ``UsageError`` if the file is missing or unreadable, or for the first thing in it that cannot be.
    """
    path = Path(path)
    if path.suffix not in (".toml", ".py"):
        msg = f"{path}: a declaration is a .toml file, or a .py file with DECLARATION = {{...}}"
        raise UsageError(msg)
    if not path.is_file():
        msg = f"{path}: {'is no file' if path.exists() else 'does not exist'}: give the path of a declaration"
        raise UsageError(msg)
    content = (
        _of_toml(path) if path.suffix == ".toml" else getattr(load_file(path, "Python"), "DECLARATION", None)
    )
    if not isinstance(content, dict):
        msg = f"{path}: must define DECLARATION = {{...}}, a dictionary; got {content!r}"
        raise UsageError(msg)
    declaration = _Reading(path).declaration(content)
    _check(declaration)
    return declaration


def _of_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 5,000 brackets
        msg = f"{path}: is no TOML: {error}"
        raise UsageError(msg) from error


class _Reading:
    """Turns plain values into a declaration; raises with the place of a value of the wrong kind."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def declaration(self, content: dict[str, Any]) -> Declaration:
        self._known("", content)
        tables = {
            name: self._table(content, name) for name in ("columns", "computed", "refuse", *_KEYS) if name
        }
        for name in ("stream", "csv", "run"):
            self._known(name, tables[name])
        stream, csv, run = tables["stream"], tables["csv"], tables["run"]
        form = self._csv(csv)
        columns = {name: self._column(name, value, form.zone) for name, value in tables["columns"].items()}
        computed = {name: self._text(tables["computed"], name, "computed") for name in tables["computed"]}
        if "time" not in stream:
            self._wrong('[stream] must name the time: time = "..."')
        return Declaration(
            path=self._path,
            columns=columns,
            time=self._text(stream, "time", "stream"),
            name=self._text(content, "name", default=self._path.stem),
            format=self._text(content, "format", default="csv"),
            unit=self._text(stream, "unit", "stream", default=""),
            arrival=self._text(stream, "arrival", "stream") if "arrival" in stream else None,
            source=self._texts(stream, "source"),
            by=self._texts(stream, "by"),
            keep=self._texts(stream, "keep") or (*columns, *computed),
            computed=computed,
            refuse={name: self._text(tables["refuse"], name, "refuse") for name in tables["refuse"]},
            csv=form,
            graph=self._text(run, "graph", "run", default=""),
            policy=self._text(run, "policy", "run", default=""),
            partition=self._text(run, "partition", "run", default=""),
        )

    def _csv(self, given: dict[str, Any]) -> CsvFormat:
        texts = {key: self._text(given, key, "csv") for key in given if key not in (*_LISTS, "header")}
        lists = {key: self._texts(given, key, "csv", "a text or texts") for key in _LISTS if key in given}
        usual = {"delimiter": ";" if given.get("decimal") == "," else ","}
        try:
            return CsvFormat(**(usual | texts | lists), header=self._truth(given, "header", True))  # type: ignore[arg-type]
        except UsageError as error:
            self._wrong(f"[csv] {str(error).removeprefix('CsvFormat: ')}")

    def _column(self, name: str, given: Any, zone: str) -> Column:
        if isinstance(given, str):
            given = {"type": given}
        if not isinstance(given, dict) or "type" not in given:
            self._wrong(f"column {name!r} must be a type or {{type = ..., zone = ...}}; got {given!r}")
        self._known("columns", given, f"column {name!r}")
        texts = {key: self._text(given, key, f"columns.{name}") for key in given if key != "required"}
        if zone and texts["type"] == "timestamp":
            texts.setdefault("zone", zone)
        return Column(**texts, required=self._truth(given, "required", False))

    def _known(self, table: str, content: dict[str, Any], what: str = "") -> None:
        for key in content:
            if not isinstance(key, str):
                self._wrong(f"names are texts; got {key!r}")
            if key not in _KEYS[table]:
                where = what or (f"[{table}]" if table else "the declaration")
                self._wrong(f"{where} has no {key!r}{closest_or_all(key, _KEYS[table])}")

    def _table(self, content: dict[str, Any], name: str) -> dict[str, Any]:
        table = content.get(name, {})
        if not isinstance(table, dict) or not all(isinstance(key, str) for key in table):
            self._wrong(f"[{name}] must be a table; got {table!r}")
        return table

    def _text(self, content: dict[str, Any], key: str, table: str = "", default: str | None = None) -> str:
        value = content.get(key, default)
        if not isinstance(value, str):
            self._wrong(f"{f'[{table}] ' if table else ''}{key} must be a text; got {value!r}")
        return value

    def _texts(
        self, content: dict[str, Any], key: str, table: str = "stream", must: str = "names of columns"
    ) -> tuple[str, ...]:
        value = content.get(key, [])
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            self._wrong(f"[{table}] {key} must be {must}; got {value!r}")
        return tuple(value)

    def _truth(self, content: dict[str, Any], key: str, default: bool) -> bool:
        value = content.get(key, default)
        if not isinstance(value, bool):
            self._wrong(f"{key} must be true or false; got {value!r}")
        return value

    def _wrong(self, what: str) -> NoReturn:
        msg = f"{self._path}: {what}"
        raise UsageError(msg)


def _check(spec: Declaration) -> None:
    """Raise ``UsageError`` for the first thing that cannot be."""
    for wrong in _wrongs(spec):
        msg = f"{spec.path}: {wrong}"
        raise UsageError(msg)


def _wrongs(spec: Declaration) -> Iterable[str]:
    names = [*spec.columns, *spec.computed]
    if spec.format not in FORMATS:
        yield f"format must be one of {', '.join(FORMATS)}; got {spec.format!r}"
    if not spec.columns:
        yield '[columns] must declare at least one column: name = "type"'
    for name in names:
        if not _NAME.fullmatch(name):
            yield f"column {name!r}: a name begins with a letter, then come letters, digits and '_'"
    for name in spec.computed.keys() & spec.columns.keys():
        yield f"[computed] {name!r} is a column of the files already: give it another name"
    folded = [name.lower() for name in names]
    for name in names:
        if folded.count(name.lower()) > 1:
            yield f"column {name!r}: Spark ignores case: names must differ by more than that"
    for name, column in spec.columns.items():
        yield from _wrong_column(name, column)
    named = {"time": [spec.time], "arrival": [spec.arrival] if spec.arrival else []}
    for key, wanted in (named | {"source": spec.source, "by": spec.by, "keep": spec.keep}).items():
        for name in wanted:
            if name not in names:
                yield f"[stream] {key}: no column {name!r}{closest_or_all(name, names)}"
    for name in spec.by:
        if name not in spec.stream:
            yield f"[stream] by: {name!r} must be kept: add it to keep"
    for table in ("computed", "refuse"):
        for name in getattr(spec, table):
            spec.expression(table, name)
    yield from _wrong_csv(spec)
    if not re.fullmatch(r"[\w-]{1,60}", spec.name):
        yield f"name is made of letters, digits, '_' and '-', 60 at most; got {spec.name!r}"
    yield from _wrong_unit(spec)


def _wrong_csv(spec: Declaration) -> Iterable[str]:
    """Yield the forms that Spark, which reads CSV by lines, cannot read as our traces do."""
    if spec.format != "csv" and spec.csv != _USUAL:
        yield f"[csv] is for CSV files; got format {spec.format!r}: leave it out"
    for name in ("delimiter", "quote", "comment"):
        if getattr(spec.csv, name) == "\\":
            yield f"[csv] {name} must be another character than a backslash, which Spark takes for an escape"
    encoding = spec.csv.encoding or "utf-8"
    if high_texts(encoding) is None:
        yield (
            f"[csv] encoding must be UTF-8, or of one byte a character, where Spark reads by lines; got {encoding!r}: "
            "convert the files to UTF-8 (iconv)"
        )
    if spec.csv.names and (missing := set(spec.columns) - {*spec.csv.names}):
        yield f"[csv] names must have all columns under [columns]; {min(missing)!r} is missing"


def _wrong_column(name: str, column: Column) -> Iterable[str]:
    if column.type not in SPARK_TYPES:
        yield f"column {name!r}: unknown type {column.type!r}{closest_or_all(column.type, SPARK_TYPES)}"
    if column.type != "timestamp" and (column.format or column.zone != "UTC"):
        yield f"column {name!r}: only a timestamp has a format or a zone; got type {column.type!r}"
    zones = _zones()
    if zones and column.zone not in zones:
        yield f"column {name!r}: unknown time zone {column.zone!r}{closest_or_all(column.zone, zones)}"


@cache
def _zones() -> frozenset[str]:
    """Return all time zones: none where the machine has none."""
    return frozenset(zoneinfo.available_timezones())


def _wrong_unit(spec: Declaration) -> Iterable[str]:
    column = spec.columns.get(spec.time)
    if column is None:
        return  # it is computed, so Spark knows its type
    if column.type in _INTEGERS and not spec.unit:
        yield f"[stream] time: {spec.time!r} is an integer, so it needs a unit: {', '.join(TIME_UNITS)}, or a word"
    if column.type == "timestamp" and spec.unit not in ("", *_INSTANTS):
        yield f"[stream] unit of a timestamp must be one of {', '.join(_INSTANTS)}; got {spec.unit!r}"
    if column.type not in (*_INTEGERS, "timestamp"):
        yield f"[stream] time: {spec.time!r} must be an integer or a timestamp; got {column.type}"
