"""The raw cells of files, row by row, with the place of each row.

No name of a file or of a column becomes text that Spark reads.  It takes ``[1]`` or ``*`` in a path for a pattern,
skips files with ``_`` in front, and would read a name in backticks in a header as an expression.
So it is given links to the files, and cells, both with numbers for names.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from oop_engine.core.errors import UsageError
from oop_engine.pipeline.declaration import Declaration
from oop_engine.pipeline.inputs import FileLayout, Input
from oop_engine.traces.compressed import opened
from oop_engine.traces.csv_format import CsvFormat, high_texts
from oop_engine.traces.formats.partitions import partitions

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["BLOCK", "FILE", "LINK", "MISFIT", "ROW", "cell_of", "cells", "escaped", "not_text_of", "repeats"]

FILE, BLOCK, ROW, MISFIT = "_file", "_block", "_row", "_misfit"
"""Columns that go along: the number of the file, where in it the row stood, and a row without cells, as it stood."""

_DIGITS = 9
_COPIED = 1 << 20
LINK = re.compile(rf"(?:file:)?/\S*/inputs/(\d{{{_DIGITS}}})(?:\.\w+)?")
"""How Spark writes a file that went in; the group is its number."""

_PATTERNS = r"\ { } [ ] * ?"
_PATTERN = re.compile(r"([\\{}\[\]*?])")
_SUFFIX = re.compile(r"\.\w{1,8}", re.ASCII)
_BLANK = r"^[ \t\r]*$"
_ENDS_EARLY = r"\}[ \t\r]*\]"


def cell_of(layout: FileLayout, name: str) -> str:
    """Return the column that has the cells of a column of the files."""
    return f"_cell_{layout.columns.index(name)}"


def not_text_of(layout: FileLayout, name: str) -> str:
    """Return the column that tells where a column of text has another value of JSON."""
    return f"_not_text_{layout.columns.index(name)}"


def escaped(path: Path) -> str:
    """Return a path as Spark must be given it, to read just that; raises ``UsageError`` where there is no way."""
    text = str(path)
    if not text.isprintable() or (":" in text and _PATTERN.search(text)):
        msg = (
            f"{text!r}: Spark cannot read there: give a path that can be printed, without ':' or {_PATTERNS}"
        )
        raise UsageError(msg)
    return _PATTERN.sub(r"\\\1", text)


def cells(spark: SparkSession, declaration: Declaration, layout: FileLayout, links: Path) -> DataFrame:
    """Return the rows of some files: cells, rows that fit no columns, and the place of each row.

    ``links``: a folder for the links to the files, which must be there for as long as rows are read.
    """
    paths = _linked(layout.files, links)
    match declaration.format:
        case "parquet":
            cells = _typed(spark, layout, paths)
        case "json":
            cells = _objects(spark, declaration, layout, paths)
        case _:
            cells = _lines(spark, declaration, layout, paths)
    return cells.withColumns({cell_of(layout, name): _of_folder(layout, name) for name in layout.of_folders})


def _of_folder(layout: FileLayout, name: str) -> SparkColumn:
    """Return the text that the folder of a row's file has, by the number of the file: a list that Spark reads once."""
    from pyspark.sql import functions as F

    texts = {str(file.number): partitions(file.path)[name] for file in layout.files}
    by_file = F.from_json(F.lit(json.dumps(texts)), "map<string, string>")
    return F.element_at(by_file, F.col(FILE).cast("string"))


def _linked(files: Iterable[Input], links: Path) -> list[str]:
    links.mkdir(parents=True, exist_ok=True)
    names = []
    for file in files:
        suffix = file.path.suffix  # from it Spark knows the compression
        link = links / f"{file.number:0{_DIGITS}d}{suffix if _SUFFIX.fullmatch(suffix) else ''}"
        link.unlink(missing_ok=True)
        if suffix.lower() == ".zst":  # Spark has no codec of it unless Hadoop's native library is installed
            link = link.with_suffix(".unpacked")
            with opened(file.path) as packed, link.open("wb") as whole:
                shutil.copyfileobj(packed, whole, _COPIED)
        else:
            link.symlink_to(file.path)
        names.append(escaped(link))
    return names


def _typed(spark: SparkSession, layout: FileLayout, paths: list[str]) -> DataFrame:
    from pyspark.sql import functions as F

    frame = spark.read.parquet(*paths)
    columns = [
        frame["`" + name.replace("`", "``") + "`"].alias(cell_of(layout, name)) for name in layout.names
    ]
    row = frame.metadataColumn("_metadata")["row_index"]
    return frame.select(*columns, F.lit(None).cast("string").alias(MISFIT), *_stood(frame, row))


def _lines(spark: SparkSession, declaration: Declaration, layout: FileLayout, paths: list[str]) -> DataFrame:
    from pyspark.sql import functions as F

    form, quote = declaration.csv, declaration.csv.quote or "\0"
    high = high_texts(form.encoding or "utf-8")
    reader = (
        spark.read.schema(_texts(["value", MISFIT]))
        .option("columnNameOfCorruptRecord", MISFIT)
        .option("sep", "\x01")
        .option("quote", "")
        .option("header", bool(form.header))
        .option("columnPruning", False)  # else nobody counts the cells
        .option("encoding", "ISO-8859-1" if high else "UTF-8")
    )
    line = (reader.option("comment", form.comment) if form.comment else reader).csv(paths)
    raw = F.coalesce(F.col(MISFIT), F.col("value"))
    if high:
        raw = F.translate(raw, bytes(range(128, 256)).decode("latin-1"), high)
    text = F.regexp_replace(raw, _null_words(form), "$1$2") if form.nulls else raw
    names = [cell_of(layout, name) for name in layout.names]
    schema = ", ".join(f"{name} STRING" for name in [*names, MISFIT])
    signs = {"sep": form.delimiter or ",", "quote": form.quote, "escape": form.quote}
    options = signs | {"columnNameOfCorruptRecord": MISFIT}
    read = line.select(
        raw.alias("_line"),
        F.from_csv(text, schema, options).alias("_cells"),
        *_stood(line, F.monotonically_increasing_id()),
    )
    # Spark closes a quote that is open at the end of a line: the first piece of a cell with line breaks.
    whole = ~F.contains(F.col("_line"), F.lit(quote)) | (
        F.col("_line").rlike(_row_of(form)) if form.quote else F.lit(False)
    )
    fits = F.col("_cells")[MISFIT].isNull() & whole
    return read.select(
        *(F.when(fits, F.col("_cells")[name]).alias(name) for name in names),
        F.when(~fits, F.col("_line")).alias(MISFIT),
        FILE,
        BLOCK,
        ROW,
    )


def _row_of(form: CsvFormat) -> str:
    """Return a pattern of lines in which each quote that opens a cell closes it."""
    sign, q = (_in_class(each) for each in (form.delimiter or ",", form.quote))
    cell = f"(?:{_quoted(form)}|(?![{q}])[^{sign}]*+)"
    return f"^{cell}(?:[{sign}]{cell})*+$"


def _null_words(form: CsvFormat) -> str:
    """Return a pattern of cells that are a word for null, without quotes; group 2 is a cell in quotes."""
    sign, words = _in_class(form.delimiter or ","), "|".join(re.escape(word) for word in form.nulls)
    quoted = _quoted(form) if form.quote else "(?!)"
    return f"(^|[{sign}])(?:({quoted})|(?:{words})(?=[{sign}]|$))"


def _quoted(form: CsvFormat) -> str:
    q = _in_class(form.quote)
    return f"[{q}](?:[^{q}]++|[{q}][{q}])*+[{q}]"


def _in_class(sign: str) -> str:
    """Return an ASCII character as it stands in a class of a pattern."""
    return f"\\x{ord(sign):02x}"


def _objects(
    spark: SparkSession, declaration: Declaration, layout: FileLayout, paths: list[str]
) -> DataFrame:
    """Return the objects in lines of JSON; a line must be one object.

    Spark reads the first value of a text and ignores the rest.  As the only element of an array the value must
    be followed by a closing bracket, so a line gets by only if it has such a bracket itself; and then it
    is an array too if a brace follows.  Of a key that is there twice Spark takes the last value: a line with a
    column twice is refused.

    Spark makes a text of anything where one is asked for: ``1.50`` becomes ``1.5``, and half of a surrogate pair a
    question mark.  So columns of text are read as variants, too, which know their types.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StructField, StructType, VariantType

    def in_array(end: str) -> SparkColumn:
        return F.concat(F.lit("["), F.col("value"), F.lit(end))

    frame = spark.read.text(paths)
    objects = F.from_json(in_array("]"), ArrayType(_texts(layout.names)))
    read = frame.filter(~F.col("value").rlike(_BLANK)).select(
        "value", objects.alias("_objects"), *_stood(frame, F.monotonically_increasing_id())
    )
    closes = F.col("value").rlike(_ENDS_EARLY)  # in front: few do, and only these are read again
    ended = closes & F.from_json(in_array("}"), "array<string>").isNotNull()
    is_object = F.col("value").rlike(r"^[ \t]*\{") & (F.size("_objects") == 1) & ~ended
    is_object &= ~repeats(F.col("value"), layout.names)
    first = F.get("_objects", F.lit(0))
    columns = [
        F.when(F.col(MISFIT).isNull(), first[name]).alias(cell_of(layout, name)) for name in layout.names
    ]
    texts = [
        name
        for name in layout.names
        if name in declaration.columns and declaration.columns[name].type == "string"
    ]
    if texts:
        variants = StructType([StructField(name, VariantType()) for name in texts])
        read = read.withColumn("_variants", F.from_json(in_array("]"), ArrayType(variants)))
    for name in texts:
        variant = F.get("_variants", F.lit(0))[name]
        is_text = F.coalesce(F.schema_of_variant(variant) == "STRING", F.lit(False))
        columns.append((first[name].isNotNull() & ~is_text).alias(not_text_of(layout, name)))
    marked = read.withColumn(
        MISFIT, F.when(F.coalesce(is_object, F.lit(False)), None).otherwise(F.col("value"))
    )
    return marked.select(*columns, MISFIT, FILE, BLOCK, ROW)


def repeats(line: SparkColumn, names: Iterable[str]) -> SparkColumn:
    """Return whether the object in a line has one of the columns twice."""
    from pyspark.sql import functions as F

    known = F.filter(F.json_object_keys(line), lambda key: key.isin(*names))
    return F.size(known) > F.size(F.array_distinct(known))


def _texts(names: Iterable[str]) -> StructType:
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([StructField(name, StringType()) for name in names])


def _stood(frame: DataFrame, row: SparkColumn) -> list[SparkColumn]:
    """Return the columns of a row's place.  ``row``: any number that grows within a block."""
    from pyspark.sql import functions as F

    metadata = frame.metadataColumn("_metadata")
    number = F.substring(metadata["file_name"], 1, _DIGITS).cast("int")
    return [number.alias(FILE), metadata["file_block_start"].alias(BLOCK), row.alias(ROW)]
