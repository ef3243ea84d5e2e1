"""Sniffing of CSV: encoding, delimiter, decimal comma and dates, by the first block of a file.

Only a form with one meaning is taken: ``1,234`` may be 1.234 or 1234, and ``03/04/2026`` two days, so such columns stay
text; a ``CsvFormat`` tells.  A live source has no first block: there, and where a form has two meanings, a refused cell
names the option that reads it (``csv_hint``), for files, tails, folders and messages in the same words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from oop_engine.core.values.arrays import converted
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.formats.csv_cells import canonical, date_pattern, matches, number_pattern
from oop_engine.traces.formats.csv_rows import CsvRows
from oop_engine.traces.formats.encodings import MARKS, wide_encoding

__all__ = ["as_data", "csv_hint", "csv_options", "sniffed_cells", "sniffed_delimiter", "sniffed_encoding"]

Options = dict[str, str | list[str]]
"""Options of ``CsvFormat`` by name."""

_DELIMITERS = (",", ";", "\t", "|")
_LINES = 50
_COMMA = r"^\s*[+-]?[0-9]+(?:,[0-9]+)?\s*$"
_SURE_COMMA = r"^\s*[+-]?(?:[0-9]+,[0-9]{1,2}|[0-9]+,[0-9]{4,}|0[0-9]*,[0-9]+|[0-9]{4,},[0-9]+)\s*$"
_POINT = r"^\s*[+-]?[0-9]+\.[0-9]+\s*$"
_SIGNS = (
    (",", ".", r"^\s*[+-]?[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+\s*$", _POINT),
    (".", ",", r"^\s*[+-]?[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+\s*$", r"^\s*[+-]?[0-9]+,[0-9]+\s*$"),
)
_ONE_MEANING = ("%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y", "%b %d %Y", "%b %d, %Y")
_DAY_FIRST, _MONTH_FIRST = ("%d/%m/%Y", "%d-%m-%Y"), ("%m/%d/%Y", "%m-%d-%Y")
_NOT_SNIFFED = ("%Y.%m.%d",)  # a version may be written so
_DAYS = (*_ONE_MEANING, *_DAY_FIRST, *_MONTH_FIRST, *_NOT_SNIFFED)
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
_OF_LOGS = "%d/%b/%Y:%H:%M:%S %z"
_LIKE_A_DATE = r"^\s*(?:[0-9]{1,4}|[A-Za-z]{3})[./ -](?:[0-9]{1,2}|[A-Za-z]{3})[./, -]"
_TWO_NUMBERS = r"^\s*(?P<a>[0-9]{1,2})[/-](?P<b>[0-9]{1,2})[/-][0-9]{4}\b"
_FEW = 200  # texts that tell most columns of other texts from dates
_OPTIONS = (
    {"decimal": ","}, {"thousands": "."}, {"thousands": " ", "decimal": ","}, {"thousands": ","}, {"thousands": "'"},
    {"thousands": " "},
)  # fmt: skip
_MEANINGS = 2  # 03/04/2026 and 1,234 have two meanings, and the user knows which


def sniffed_encoding(head: bytes) -> tuple[str, int]:
    """Return the encoding that the first bytes tell, and how long the byte order mark is."""
    for mark, encoding in MARKS.items():
        if head.startswith(mark):
            return encoding, len(mark)
    return wide_encoding(head) or "utf-8", 0


def sniffed_delimiter(head: bytes, format: CsvFormat, known: Collection[str]) -> str:
    """Return the delimiter of a file: that of a header with ``known`` names, else that which lines agree on."""
    scores = {}
    for delimiter in _DELIMITERS:
        if delimiter in (format.quote, format.comment) or (delimiter == "," and format.decimal == ","):
            continue
        rows = CsvRows(replace(format, delimiter=delimiter), ["", ""], spans=True)
        first, _, at = rows.header(head)
        if first is None:
            continue
        names = {cell.decode(errors="replace").strip() for cell in first}
        if known and names.issuperset(known) and len(first) > 1:
            return delimiter
        lines = [line for line in head[at:].splitlines()[:_LINES] if line.strip()]
        alike = sum(len(rows.cells(line) or ()) == len(first) for line in lines)
        share = alike / len(lines) if lines else 1.0
        if len(first) > 1:
            scores[delimiter] = (share > 0.5, len(first))
    return max(scores, key=scores.__getitem__, default=",")


def sniffed_cells(head: pa.RecordBatch, format: CsvFormat) -> CsvFormat:
    """Return ``format`` with the signs of numbers and the forms of dates that columns of the first block show."""
    columns = [column.drop_null().cast(pa.string()) for column in head.columns if _is_utf8(column)]
    columns = [column for column in columns if len(column)]
    if not format.thousands:
        format = _with_thousands(columns, format)
    if format.decimal is None and format.delimiter != ",":
        comma = any(_share(c, _COMMA) > 0.5 and _share(c, _SURE_COMMA) > 0 for c in columns)
        point = any(_share(c, _POINT) > 0.5 for c in columns)
        format = replace(format, decimal="," if comma and not point and format.thousands != "," else None)
    if not format.date_forms:
        forms = [form for form in map(_form_of, columns) if form]
        format = replace(format, dates=tuple(dict.fromkeys(forms)))
    return format


def csv_hint(text: str, kind: pa.DataType, format: CsvFormat) -> str:
    """Return a way out for a cell that cannot be read as ``kind`` by ``format``; "": no option reads it.

    >>> csv_hint("1,5", pa.float64(), CsvFormat(delimiter=";"))
    '; CsvFormat(decimal=",") reads it: --csv "decimal=,"'
    >>> csv_hint("28.11.2026 7:30", pa.timestamp("s"), CsvFormat())
    '; CsvFormat(dates="%d.%m.%Y %H:%M") reads it: --csv "dates=%d.%m.%Y %H:%M"'
    """
    hints = [
        f"CsvFormat({', '.join(f'{name}={as_data(value)}' for name, value in options.items())}) reads it: "
        f'--csv "{",".join(f"{name}={_typed(value)}" for name, value in options.items())}"'
        for options in csv_options(text, kind, format)
    ]
    return "; " + " or ".join(hints) if hints else ""


def csv_options(text: str, kind: pa.DataType, format: CsvFormat) -> list[Options]:
    """Return options that read a cell beside those of ``format``; two where it may mean two values."""
    is_date = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    meanings: dict[str, Options] = {}
    for with_them, options in (_of_dates if is_date else _of_signs)(text.strip(), format):
        values, _ = converted(canonical(pa.array([text]), kind, with_them), kind)
        if values[0].is_valid and len(meanings) < _MEANINGS:
            meanings.setdefault(str(values[0]), options)
    return [*meanings.values()]


def as_data(value: str | list[str]) -> str:
    """Return a value as Python and TOML have it."""
    return json.dumps(value)


def _typed(value: str | list[str]) -> str:
    return "|".join(value) if isinstance(value, list) else "space" if value == " " else value


def _of_dates(text: str, format: CsvFormat) -> Iterator[tuple[CsvFormat, Options]]:
    """Yield formats that may read a text as a date, each with its options."""
    for form in (*(form for day in _DAYS for form in _with_clock(day)), _OF_LOGS):
        if re.match(date_pattern(form), text):
            forms = [*format.date_forms, form]
            yield replace(format, dates=form), {"dates": forms if len(forms) > 1 else form}


def _of_signs(text: str, format: CsvFormat) -> Iterator[tuple[CsvFormat, Options]]:
    """Yield formats that may read a text as a number, each with its options."""
    for signs in _OPTIONS if text[-1:].isdigit() else ():
        if all(getattr(format, name) in (None, "") for name in signs):
            yield replace(format, **signs), {**signs}  # type: ignore[arg-type]


def _with_thousands(columns: list[pa.Array], format: CsvFormat) -> CsvFormat:
    """Return ``format`` with both signs of numbers where one has both, and no column has numbers of another form."""
    for decimal, thousands, both, other in _SIGNS:
        if format.decimal in (None, decimal) and not (decimal == "," == format.delimiter):
            numeric = replace(format, decimal=decimal, thousands=thousands)
            numbers = number_pattern(numeric)
            is_sure = [_share(c, both) > 0 and _share(c, numbers) > 0.5 for c in columns]
            others = [c for c, sure in zip(columns, is_sure, strict=True) if not sure]
            if any(is_sure) and all(_share(c, other) <= 0.5 for c in others):
                return numeric
    return format


def _share(texts: pa.Array, pattern: str) -> float:
    return float(pc.match_substring_regex(texts, pattern).true_count) / len(texts)


def _form_of(texts: pa.Array) -> str | None:
    """Return the form of dates that more than half of some texts have, if it has one meaning."""
    if _share(texts[:_FEW], _LIKE_A_DATE) <= 0.5:
        return None
    days = [*_ONE_MEANING, *_of_two_numbers(texts)]
    begun = [day for day in days if _share(texts, date_pattern(day, whole=False)) > 0.5]
    forms = (form for day in begun for form in _with_clock(day))
    return next(
        (form for form in (*forms, _OF_LOGS) if 2 * matches(texts, form).true_count > len(texts)), None
    )


def _of_two_numbers(texts: pa.Array) -> tuple[str, ...]:
    """Return the forms of days that begin with two numbers, of which one must be above 12 somewhere: it is the day."""
    parts = pc.extract_regex(texts, _TWO_NUMBERS).drop_null()
    first, second = (pc.max(pc.struct_field(parts, n).cast(pa.int8())).as_py() or 0 for n in "ab")
    return _DAY_FIRST if first > 12 >= second else _MONTH_FIRST if second > 12 >= first else ()


def _with_clock(day: str) -> Iterator[str]:
    """Yield the form of a day alone, and with each clock."""
    yield day
    for between in (" ", "T", ", "):
        for clock in _CLOCKS:
            yield day + between + clock


def _is_utf8(column: pa.Array) -> bool:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True
