"""Parsing, as expressions of Spark: a row of text or of Parquet becomes the declared columns, or has a reason.

Nothing is lost on the way: a value that does not fit its type is unreadable, never rounded, wrapped or
guessed, and the row goes to quarantine as it was.  The words for null are those of our traces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from oop_engine.core.errors import UsageError
from oop_engine.pipeline.cells import BLOCK, FILE, MISFIT, ROW, cell_of, cells, not_text_of, repeats
from oop_engine.pipeline.declaration import SPARK_TYPES, Column, Declaration, unreadable
from oop_engine.pipeline.inputs import FileLayout
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.formats.csv_cells import MISREAD, MONTHS, date_pattern, number_pattern

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RAW", "REASON", "SOURCE", "SOURCE_PARTS", "parsed"]

RAW, REASON, SOURCE = "_raw", "_reason", "_source"
"""Columns that go along: the raw row, the reason to refuse it, and its source."""

NULL_WORDS = ("", "NA", "N/A", "null", "NULL", "None")
SOURCE_PARTS = "\x1f"

_BAD = "_bad_"
_OFFSET = r"[ T][0-9]{2}.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
_SPELLED = r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]"""
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_LONGEST_US = len("2026-03-01T10:00:00.123456")
_NOT_US = r"\.[0-9]{6}0*[1-9]"
_OF_JAVA = r"(?i)x|[0-9.][df]$"  # 1.5f, 0x1p3
_BOOL = r"(?i)^(true|false|0|1)$"
_WHOLE = r"^(-?[0-9]+|[+-]?[0-9]+\.0*)$"
_NO_FRACTION = r"^\+|\.0*$"
_ZERO = r"^[+-]?\.0+$"
_SCIENTIFIC = r"^([+-]?)([0-9]+)(?:\.([0-9]*))?[eE]([+-]?[0-9]{1,3})$"
_LONGEST_WHOLE = 19  # digits of an int64
_CLOCK = r"[0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?"
_INSTANT = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]{_CLOCK}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?)?$"
_MANTISSA = {"float32": 24 - 1, "float64": 53 - 1}  # the place of the first bit of a float above its last
_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_LONGEST_NAME = 200  # of 255 bytes, with room for a prefix
_NS_A_US = 1000
_ROUND = {"s": 1_000_000, "ms": 1_000}  # microseconds in a unit


def parsed(spark: SparkSession, declaration: Declaration, layout: FileLayout, links: Path) -> DataFrame:
    """Return every row of some files: the stream's columns, arrival, and those that go along.

    ``links``: see ``cells``.  ``_reason`` is null for a row that can be used.  Raises ``UsageError`` for an
    expression of the declaration that Spark refuses.
    """
    rows = _typed(cells(spark, declaration, layout, links), declaration, layout)
    for name in declaration.computed:
        rows = rows.withColumn(name, _expression(rows, declaration, "computed", name))
    return _judged(rows, declaration)


def _typed(rows: DataFrame, declaration: Declaration, layout: FileLayout) -> DataFrame:
    """Return the declared columns, ``_bad_<column>`` where a cell could not be read, and the raw row."""
    from pyspark.sql import functions as F

    typed: list[SparkColumn] = []
    for name, column in declaration.columns.items():
        kind = layout.type_of(name)
        at = cell_of(layout, name)
        value, bad = _read(F.col(at), rows.schema[at].dataType, kind, column, declaration.csv)
        if column.type == "string" and not_text_of(layout, name) in rows.columns:
            bad |= F.col(not_text_of(layout, name))
        typed += [value.alias(name), bad.alias(f"{_BAD}{name}")]
    values = F.struct(*(F.col(cell_of(layout, name)).alias(name) for name in layout.columns))
    raw = F.coalesce(F.col(MISFIT), F.to_json(values, {"ignoreNullFields": "false"}))
    return rows.select(*typed, raw.alias(RAW), MISFIT, FILE, BLOCK, ROW)


def _read(
    cell: SparkColumn, kind: Any, given: pa.DataType, column: Column, form: CsvFormat
) -> tuple[SparkColumn, SparkColumn]:
    """Return a cell as its declared type, and whether it is there and cannot be read.

    ``kind`` and ``given``: its type in Spark, and in the file.
    """
    from pyspark.sql import functions as F

    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_timestamp(given) and given.unit == "ns" and kind.typeName() == "long":  # INT96 is none
        # As whole numbers: a double has no room for nanoseconds of today.
        micros = F.timestamp_micros(F.call_function("div", cell, F.lit(_NS_A_US)))
        value, bad = _recast(micros, "timestamp", given, column)
        return value, bad | (cell % _NS_A_US != 0)
    if any(test(given) for test in _BYTES):  # they are texts, as in a trace
        cell, given = cell.cast("string"), pa.string()
    if not (pa.types.is_string(given) or pa.types.is_large_string(given)):
        return _recast(cell, kind, given, column)
    if column.type == "string":
        # Spark puts the one for the other where it decodes, which it does not everywhere.
        return cell, F.contains(cell, F.lit("\ufffd")) | ~F.is_valid_utf8(cell)
    trimmed = F.trim(cell)
    text = F.when(~trimmed.isin(*NULL_WORDS), trimmed)
    return (value := _value(text, column, form)), text.isNotNull() & value.isNull()


def _value(text: SparkColumn, column: Column, form: CsvFormat) -> SparkColumn:
    """Return a text as its declared type; null where it cannot be read."""
    from pyspark.sql import functions as F

    if column.type in ("timestamp", "date32") and not column.format and form.date_forms:
        forms = form.date_forms
        text = _once(text, lambda cell: F.coalesce(*(_iso_date(cell, each) for each in forms), cell))
    if column.type == "timestamp":
        return _instant(text, column)
    if column.type == "date32":  # Spark reads '2013' as a day, and cuts the time off
        return F.when(text.rlike(_DATE), text.try_cast("date"))
    if column.type != "bool" and (form.thousands or form.decimal == ","):
        plain = F.regexp_replace(text, re.escape(form.thousands), F.lit("")) if form.thousands else text
        plain = F.regexp_replace(plain, ",", F.lit(".")) if form.decimal == "," else plain
        text = F.when(text.rlike(number_pattern(form)), plain).when(~text.rlike(MISREAD), text)
    if column.type in ("float32", "float64"):
        return _once(F.when(~text.rlike(_OF_JAVA), text), lambda cell: _float(cell, column.type))
    if column.type == "bool":  # Spark reads 'yes' and 't'
        return F.when(text.rlike(_BOOL), text.try_cast("boolean"))
    plain = F.when(text.rlike(_WHOLE), text).when(text.rlike(_ZERO), "0")
    plain = plain.when(text.rlike(_SCIENTIFIC), _written_out(text))
    return F.regexp_replace(plain, _NO_FRACTION, F.lit("")).try_cast(SPARK_TYPES[column.type])


def _written_out(text: SparkColumn) -> SparkColumn:
    """Return a whole number with an exponent without it; null where it has a fraction, or no integer has its digits."""
    from pyspark.sql import functions as F

    sign, whole, fraction, exponent = (F.regexp_extract(text, _SCIENTIFIC, group) for group in range(1, 5))
    digits = F.concat(whole, fraction)
    ahead = F.rtrim(digits, F.lit("0"))
    zeros = exponent.try_cast("int") - F.length(fraction) + F.length(digits) - F.length(ahead)
    number = F.ltrim(ahead, F.lit("0"))
    padded = F.rpad(number, F.length(number) + zeros, "0")
    return F.concat(sign, F.when(number == "", "0").when(zeros.between(0, _LONGEST_WHOLE), padded))


def _float(text: SparkColumn, kind: str) -> SparkColumn:
    """Return a text as a float; null if it is too large, or a whole number that the float would round.

    A whole number has room if the bits below the last one of the float are 0: it is a multiple of that one.
    """
    from pyspark.sql import functions as F

    value = text.try_cast(SPARK_TYPES[kind])
    digits = F.when(text.rlike(r"^[+-]?[0-9]+$"), text).try_cast("decimal(38,0)")
    below = F.greatest(F.floor(F.log2(F.abs(value.cast("double")))) - _MANTISSA[kind], F.lit(0))
    last = F.pow(F.lit(2.0), below).try_cast("decimal(38,0)")
    rounded = (F.abs(value) >= 2.0 ** _MANTISSA[kind]) & text.rlike(r"^[+-]?[0-9]+$")
    rounded &= F.coalesce(digits % last != 0, F.lit(True))
    infinite = (F.abs(value) == F.lit(float("inf"))) & ~text.rlike("(?i)inf")
    return F.when(~(rounded | infinite), value)


def _once(value: SparkColumn, then: Callable[[SparkColumn], SparkColumn]) -> SparkColumn:
    """Return an expression over a value that is computed once: Spark writes out an expression wherever it is used."""
    from pyspark.sql import functions as F

    return F.get(F.transform(F.array(value), then), 0)


def _iso_date(text: SparkColumn, form: str) -> SparkColumn:
    """Return a text of the form of a date as ISO 8601, null for another; see ``csv_cells.dates_of``."""
    from pyspark.sql import functions as F

    groups = re.findall(r"\?P<(\w)>", date_pattern(form))
    pattern = date_pattern(form).replace("(?P<", "(?<").replace("{1,9}", "{1,6}")  # Spark keeps microseconds

    def part(name: str) -> SparkColumn:
        if name not in groups:
            return F.lit("00")
        digits = F.regexp_extract(text, pattern, groups.index(name) + 1)
        return F.lpad(digits, 2, "0") if name in "dmH" else digits

    month, hour = part("m"), part("H")
    if "b" in groups:
        names = F.array(*(F.lit(name) for name in MONTHS))
        month = F.lpad(F.array_position(names, F.lower(part("b"))).cast("string"), 2, "0")
    if "p" in groups:
        hour = F.when(hour == "12", F.lit("00")).otherwise(hour)
        after_noon = F.when(F.lower(part("p")) == "pm", 12).otherwise(0)
        hour = F.lpad((hour.try_cast("int") + after_noon).cast("string"), 2, "0")
    date = F.concat_ws("-", part("Y"), month, part("d"))
    if "H" in groups:
        pieces = [date, F.lit(" "), F.concat_ws(":", hour, part("M"), part("S"))]
        if "f" in groups:
            pieces += [F.lit("."), part("f")]
        date = F.concat(*pieces, *([part("z")] if "z" in groups else []))
    return F.when(text.rlike(pattern), date)


def _instant(text: SparkColumn, column: Column) -> SparkColumn:
    from pyspark.sql import functions as F

    if column.format:
        local = F.try_to_timestamp(text, F.lit(column.format))
        return local if column.zone == "UTC" else _in_zone(local, column.zone)
    # Spark reads '12:30' as of today, '2013' as a year, and names of zones.
    whole = (F.length(text) <= _LONGEST_US) | ~text.rlike(_NOT_US)
    moment = F.when(text.rlike(_INSTANT) & whole, text.try_cast("timestamp"))
    return (
        moment
        if column.zone == "UTC"
        else F.when(text.rlike(_OFFSET), moment).otherwise(_in_zone(moment, column.zone))
    )


def _in_zone(local: SparkColumn, zone: str) -> SparkColumn:
    """Return the instant of a local time; null where the clocks of the zone do not show it once.

    ``local`` has the digits of the clock, as of UTC.  The offsets a day before and a day after give two instants: a
    time that clocks show twice has both, one that they skip has none.
    """
    from pyspark.sql import functions as F

    def by_offset(local: SparkColumn, days: int) -> SparkColumn:
        near = F.unix_micros(local) + days * 86_400_000_000
        offset = F.unix_micros(F.from_utc_timestamp(F.timestamp_micros(near), zone)) - near
        return F.timestamp_micros(F.unix_micros(local) - offset)

    def instant(both: SparkColumn) -> SparkColumn:
        before, after = both["before"], both["after"]
        first, second = (F.from_utc_timestamp(local, zone) == both["of"] for local in (before, after))
        return F.when(first & (~second | (before == after)), before).when(second & ~first, after)

    def offsets(local: SparkColumn) -> SparkColumn:
        before, after = by_offset(local, -1), by_offset(local, 1)
        return F.struct(local.alias("of"), before.alias("before"), after.alias("after"))

    return _once(_once(local, offsets), instant)


def _recast(
    cell: SparkColumn, kind: Any, given: pa.DataType, column: Column
) -> tuple[SparkColumn, SparkColumn]:
    """Return a value that is typed already; it is bad if it does not survive the way there and back."""
    from pyspark.sql import functions as F

    if column.type == "timestamp":
        value = cell.cast("timestamp")
        local = pa.types.is_date(given) or given.tz is None
        if not local or column.zone == "UTC":
            return value, F.lit(False)
        value = _in_zone(value, column.zone)
        return value, cell.isNotNull() & value.isNull()
    value = cell.try_cast(SPARK_TYPES[column.type])
    if pa.types.is_floating(given) and column.type in _MANTISSA:  # the nearest, as in a trace
        endless = F.abs(value.cast("double")) == float("inf")
        return value, cell.isNotNull() & endless & (F.abs(cell) != float("inf"))
    back = F.coalesce(value.try_cast(kind) == cell, F.lit(False))
    if (
        pa.types.is_floating(given) and column.type in _BITS
    ):  # Spark takes 2^63 for the largest number there is
        back &= cell.cast("double") < float(2 ** _BITS[column.type])
    return value, cell.isNotNull() & ~back


def _judged(rows: DataFrame, declaration: Declaration) -> DataFrame:
    """Add the first reason to each row, and its source; drop columns that the stream does not use."""
    from pyspark.sql import functions as F

    reasons = [F.when(F.col(MISFIT).isNotNull(), _misfit_of(declaration))]
    no_text = "is no text" if declaration.format == "json" else "is no UTF-8"
    for name, column in declaration.columns.items():
        reason = unreadable(name, column) if column.type != "string" else f"{name}: {no_text}"
        reasons.append(F.when(F.col(f"{_BAD}{name}"), F.lit(reason)))
    for reason in declaration.refuse:
        reasons.append(F.when(_expression(rows, declaration, "refuse", reason), F.lit(reason)))
    needed = [name for name, column in declaration.columns.items() if column.required]
    times = [declaration.time, *([declaration.arrival] if declaration.arrival else [])]
    for name in dict.fromkeys([*needed, *declaration.source, *times]):
        reasons.append(F.when(F.col(name).isNull(), F.lit(f"{name} is null")))
    kinds = dict(rows.dtypes)
    if kinds[declaration.time] == "timestamp" and declaration.unit in _ROUND:
        parts = F.unix_micros(declaration.time) % _ROUND[declaration.unit]
        reasons.append(
            F.when(parts != 0, F.lit(f"{declaration.time}: is no whole number of {declaration.unit}"))
        )
    source = F.concat_ws(SOURCE_PARTS, *declaration.source) if declaration.source else F.lit(declaration.name)
    if declaration.source:
        reason = f"{' and '.join(declaration.source)}: too long for the name of a source, or no name"
        reasons.append(F.when(~_is_name(source), F.lit(reason)))
    reason = F.coalesce(*reasons)
    known = reduce(
        lambda a, b: a & b, [F.col(name).isNotNull() for name in declaration.source], _is_name(source)
    )
    columns = list(dict.fromkeys([*declaration.stream, *times]))
    return rows.select(
        *columns,
        F.when(known, source).alias(SOURCE),
        reason.alias(REASON),
        F.when(reason.isNotNull(), F.col(RAW)).alias(RAW),
        FILE,
        BLOCK,
        ROW,
    )


def _is_name(source: SparkColumn) -> SparkColumn:
    """Return whether a source can be the name of a folder, in which Spark writes some characters as three."""
    from pyspark.sql import functions as F

    spelled = F.octet_length(F.regexp_replace(source, _SPELLED, F.lit("%00")))
    short = F.octet_length(source).between(1, _LONGEST_NAME // 3)
    return (short | spelled.between(2, _LONGEST_NAME)) & ~F.contains(source, F.lit("\0"))


def _misfit_of(declaration: Declaration) -> SparkColumn:
    from pyspark.sql import functions as F

    if declaration.format == "csv":
        return F.lit("too few or too many cells")
    of_two = F.coalesce(repeats(F.col(MISFIT), declaration.columns), F.lit(False))
    return F.when(of_two, "has a column twice").otherwise("is no JSON object")


def _expression(
    rows: DataFrame, declaration: Declaration, table: Literal["computed", "refuse"], name: str
) -> SparkColumn:
    """Return an expression of the user; raises ``UsageError`` if Spark cannot make sense of it."""
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F

    try:
        expression = F.expr(declaration.expression(table, name))
        rows.select(expression.alias("_tried"))
    except (AnalysisException, ParseException) as error:
        reason = str(error).strip().splitlines()[0]
        msg = f"{declaration.place(table, name)}: {getattr(declaration, table)[name]!r}: {reason}"
        raise UsageError(msg) from error
    return expression
