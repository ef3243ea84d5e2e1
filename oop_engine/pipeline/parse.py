"""Parsing, as expressions of Spark: a row of text or of Parquet becomes the declared columns, or has a reason.

Nothing is lost on the way: a value that does not fit its type is unreadable, never rounded, wrapped or
guessed, and the row goes to quarantine with what it was.  The words for null are those of our traces.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from oop_engine.errors import UsageError
from oop_engine.pipeline.declaration import SPARK_TYPES, Column, Declaration
from oop_engine.pipeline.inputs import Layout

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BLOCK", "FILE", "RAW", "REASON", "ROW", "SOURCE", "parsed"]

FILE, BLOCK, ROW = "_file", "_block", "_row"
RAW, REASON, SOURCE = "_raw", "_reason", "_source"
"""Columns that go along: where a row stood, what it was, why it is refused, and whose it is."""

NULL_WORDS = ("", "NA", "N/A", "null", "NULL", "None")
SOURCE_PARTS = "\x1f"

_MISFIT = "_misfit"
_BAD = "_bad_"
_CELL = "_cell_"
_SCHEME = re.compile("^file:/+")
_ROUND = {"s": 1_000_000, "ms": 1_000}  # microseconds in a unit


def parsed(spark: SparkSession, declaration: Declaration, layout: Layout) -> DataFrame:
    """Return every row of some files: the stream's columns, arrival, and those that go along.

    ``_reason`` is null for a row that can be used.  Raises ``UsageError`` for an expression of the
    declaration that Spark refuses.
    """
    cells = _cells(spark, declaration, layout)
    rows = _typed(cells, declaration, layout)
    for name, expression in declaration.computed.items():
        rows = rows.withColumn(name, _expression(rows, expression, f"{declaration.path}: [computed] {name}"))
    return _judged(rows, declaration)


def _cells(spark: SparkSession, declaration: Declaration, layout: Layout) -> DataFrame:
    """Return the cells as ``_cell_<column>``, what fits no column as ``_misfit``, and where the row stood."""
    paths = [str(file.path) for file in layout.files]
    if declaration.format == "parquet":
        frame, misfit, row = spark.read.parquet(*paths), "CAST(NULL AS STRING)", "_metadata.row_index"
    else:
        frame, misfit = _lines(spark, declaration, layout, paths), _MISFIT
        row = "monotonically_increasing_id()"  # grows within a block, which is all that is asked of it
    cells = [f"`{name}` AS `{_CELL}{name}`" for name in layout.names if name != _MISFIT]
    stood = ["_metadata.file_path AS _path", f"_metadata.file_block_start AS {BLOCK}", f"{row} AS {ROW}"]
    found = frame.selectExpr(*cells, f"{misfit} AS {_MISFIT}", *stood)
    return _numbered(spark, found, frame.inputFiles(), layout)


def _lines(spark: SparkSession, declaration: Declaration, layout: Layout, paths: list[str]) -> DataFrame:
    schema = ", ".join(f"`{name}` STRING" for name in (*layout.names, _MISFIT))
    reader = spark.read.schema(schema).option("columnNameOfCorruptRecord", _MISFIT)
    if declaration.format == "json":
        return reader.json(paths)
    return (
        reader.option("sep", declaration.delimiter)
        .option("header", declaration.header)
        .option("escape", '"')  # a quote within quotes is two of them
        .option("columnPruning", False)  # else nobody counts the cells
        .csv(paths)
    )


def _numbered(spark: SparkSession, cells: DataFrame, uris: list[str], layout: Layout) -> DataFrame:
    """Put the number of its file to each row; ``uris``: the files as Spark spells them, but for slashes in front."""
    from pyspark.sql import functions as F

    if len(layout.files) == 1:
        return cells.withColumn(FILE, F.lit(layout.files[0].number).cast("int")).drop("_path")
    numbers = {str(file.path): file.number for file in layout.files}
    paths = [_SCHEME.sub("/", uri) for uri in uris]
    known = {f"file:{slashes}{p}": numbers[unquote(p)] for p in paths for slashes in ("", "//")}
    table = pa.table({"_path": list(known), FILE: pa.array([*known.values()], pa.int32())})
    return cells.join(F.broadcast(spark.createDataFrame(table)), "_path", "left").drop("_path")


def _typed(cells: DataFrame, declaration: Declaration, layout: Layout) -> DataFrame:
    """Return the declared columns, ``_bad_<column>`` where a cell could not be read, and the raw row."""
    from pyspark.sql import functions as F

    typed: list[SparkColumn] = []
    for name, column in declaration.columns.items():
        kind = layout.types[layout.names.index(name)]
        cell = f"{_CELL}{name}"
        value, bad = _read(F.col(cell), cells.schema[cell].dataType, kind, column)
        typed += [value.alias(name), bad.alias(f"{_BAD}{name}")]
    values = F.struct(*(F.col(f"`{_CELL}{name}`").alias(name) for name in layout.names))
    raw = F.coalesce(F.col(_MISFIT), F.to_json(values, {"ignoreNullFields": "false"}))
    return cells.select(*typed, raw.alias(RAW), _MISFIT, FILE, BLOCK, ROW)


def _read(
    cell: SparkColumn, kind: Any, found: pa.DataType, column: Column
) -> tuple[SparkColumn, SparkColumn]:
    """Return a cell as its declared type, and whether it is there and cannot be read.

    ``kind`` and ``found``: its type in Spark, and in the file.
    """
    from pyspark.sql import functions as F

    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_timestamp(found) and found.unit == "ns":
        return F.timestamp_micros(F.floor(cell / F.lit(1000))), cell % 1000 != 0
    if not (pa.types.is_string(found) or pa.types.is_large_string(found)):
        return _recast(cell, kind, found, column)
    if column.type == "string":
        return cell, F.contains(cell, F.lit("\ufffd"))  # what Spark puts for what is no UTF-8
    trimmed = F.trim(cell)
    text = F.when(~trimmed.isin(*NULL_WORDS), trimmed)
    value = _instant(text, column) if column.type == "timestamp" else text.try_cast(SPARK_TYPES[column.type])
    return value, text.isNotNull() & value.isNull()


def _instant(text: SparkColumn, column: Column) -> SparkColumn:
    from pyspark.sql import functions as F

    local = text if column.zone == "UTC" else F.concat(text, F.lit(f" {column.zone}"))
    if column.format:
        pattern = column.format if column.zone == "UTC" else f"{column.format} VV"
        return F.try_to_timestamp(local, F.lit(pattern))
    # Spark reads '12:30' as of today, and '2013' as a year.
    return F.when(F.substring(text, 5, 1) == "-", local.try_cast("timestamp"))


def _recast(
    cell: SparkColumn, kind: Any, found: pa.DataType, column: Column
) -> tuple[SparkColumn, SparkColumn]:
    """Return a value that is typed already; it is bad if it does not survive the way there and back."""
    from pyspark.sql import functions as F

    if column.type == "timestamp":
        value = cell.cast("timestamp")
        local = pa.types.is_date(found) or found.tz is None
        return (F.to_utc_timestamp(value, column.zone) if local else value), F.lit(False)
    value = cell.try_cast(SPARK_TYPES[column.type])
    back = F.coalesce(value.try_cast(kind) == cell, F.lit(False))
    return value, cell.isNotNull() & ~back


def _judged(rows: DataFrame, declaration: Declaration) -> DataFrame:
    """Put the first reason to each row, its source, and leave what the stream has no use for."""
    from pyspark.sql import functions as F

    reasons = [F.when(F.col(_MISFIT).isNotNull(), F.lit(_misfit_of(declaration)))]
    for name, column in declaration.columns.items():
        said = (
            f"{name}: cannot be read as {column.type}" if column.type != "string" else f"{name}: is no UTF-8"
        )
        reasons.append(F.when(F.col(f"{_BAD}{name}"), F.lit(said)))
    for reason, condition in declaration.refuse.items():
        what = f"{declaration.path}: [refuse] {reason!r}"
        reasons.append(F.when(_expression(rows, condition, what), F.lit(reason)))
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
    reason = F.coalesce(*reasons)
    source = F.concat_ws(SOURCE_PARTS, *declaration.source) if declaration.source else F.lit(declaration.name)
    known = reduce(lambda a, b: a & b, [F.col(name).isNotNull() for name in declaration.source], F.lit(True))
    kept = list(dict.fromkeys([*declaration.stream, *times]))
    return rows.select(
        *kept,
        F.when(known, source).alias(SOURCE),
        reason.alias(REASON),
        F.when(reason.isNotNull(), F.col(RAW)).alias(RAW),
        FILE,
        BLOCK,
        ROW,
    )


def _misfit_of(declaration: Declaration) -> str:
    return "too few or too many cells" if declaration.format == "csv" else "is no JSON object"


def _expression(rows: DataFrame, text: str, what: str) -> Any:
    """Return an expression of the user; raises ``UsageError`` if Spark cannot make sense of it."""
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F

    try:
        found = F.expr(text)
        rows.select(found.alias("_tried"))
    except (AnalysisException, ParseException) as error:
        said = str(error).strip().splitlines()[0]
        msg = f"{what}: {text!r}: {said}"
        raise UsageError(msg) from error
    return found
