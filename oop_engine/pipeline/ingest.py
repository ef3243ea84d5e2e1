"""Ingest: files of raw events become segments in order of arrival, a folder of them for each source.

    parse    every row once: usable rows, and the others with the reason, in one job
    order    range partitions by arrival, each sorted and written as a segment; nothing comes to the driver

Rows that arrive together keep the order of their files, and within a file that of its rows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oop_engine.core.errors import TraceError
from oop_engine.pipeline.cells import BLOCK, FILE, ROW, escaped
from oop_engine.pipeline.declaration import Declaration
from oop_engine.pipeline.inputs import FileLayout
from oop_engine.pipeline.parse import RAW, REASON, SOURCE, SOURCE_PARTS, parsed
from oop_engine.pipeline.segmenting import MOST_SOURCES
from oop_engine.pipeline.spark_errors import as_trace_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["order", "parse", "prepare", "settled"]

_FATE, _USED, _REFUSED = "_fate", "used", "refused"
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # else a computed column wraps around silently
    # Times and days: of which clock they are, as which type they are read, and that none is shifted on the way.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # No row is skipped, none of an earlier start is left, and a task writes one file for each source.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.files.maxRecordsPerFile": "0",
    # With fewer, a task sorts its rows by the file they go to, which undoes the order of arrival.
    "spark.sql.maxConcurrentOutputFileWriters": str(MOST_SOURCES),
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@contextmanager
def settled(spark: SparkSession) -> Iterator[None]:
    """Give a session the settings that the rows depend on; afterwards it has its own again."""
    before = {name: spark.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        with suppress(Exception):  # its JVM may be gone, and whoever used it has the error
            for name, was in before.items():
                if was is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, was)


def prepare(
    spark: SparkSession, declaration: Declaration, layouts: Sequence[FileLayout], links: Path
) -> DataFrame:
    """Return all rows, which are parsed when they are asked for, by way of the ``links`` to their files.

    The session must be ``settled`` until all are written.  Raises ``UsageError`` for an expression of the declaration
    that Spark refuses.
    """
    return reduce(
        lambda a, b: a.unionByName(b), [parsed(spark, declaration, layout, links) for layout in layouts]
    )


def parse(rows: DataFrame, files: Sequence[Path], staged: Path, quarantine: Path) -> dict[str, Any]:
    """Write usable rows to ``staged``, and the others to ``quarantine`` with raw row and reason.

    Returns how many rows there were: ``used`` by source, ``quarantined`` by source
    and reason, ``rows_in`` by file, and ``examples``: a raw row by reason.
    Raises ``TraceError`` if a row was lost on the way.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen = Observation()
    fate = F.when(F.col(REASON).isNull(), _USED).otherwise(_REFUSED)
    counted = rows.observe(seen, F.count(F.lit(1)).alias("rows")).withColumn(_FATE, fate)
    with as_trace_errors("a row could not be parsed", files):
        counted.write.mode("overwrite").partitionBy(_FATE).parquet(str(staged))
    staged_rows = rows.sparkSession.read.schema(counted.schema).parquet(escaped(staged))
    _write_quarantine(staged_rows, files, quarantine)
    in_files, used, refused, examples = _counted(staged_rows)
    total = used.total() + refused.total()
    if not total == seen.get["rows"] == sum(in_files[number] for number in range(len(files))):
        counts = f"read {seen.get['rows']:,} rows, {staged} has {total:,}"
        msg = f"ingest: {counts}: compare it with the input; does another process write in one of them?"
        raise TraceError(msg)
    return {
        "rows": total,
        "files": [in_files[number] for number in range(len(files))],
        "used": dict(used),
        "quarantined": [
            {"source": source, "reason": reason, "rows": rows}
            for (source, reason), rows in refused.most_common()
        ],
        "examples": examples,
    }


_Refused = Counter[tuple[str | None, str]]


def _counted(staged_rows: DataFrame) -> tuple[Counter[int], Counter[str], _Refused, dict[str, str]]:
    """Count the written rows: by file; usable ones by source; the others by source and reason, each with one row."""
    from pyspark.sql import functions as F

    in_files: Counter[int] = Counter()
    used: Counter[str] = Counter()
    refused: _Refused = Counter()
    examples: dict[str, str] = {}
    figures = F.count(F.lit(1)).alias("count"), F.min(RAW).alias(RAW)
    for row in staged_rows.groupBy(_FATE, SOURCE, REASON, FILE).agg(*figures).collect():
        in_files[row[FILE]] += row["count"]
        if row[_FATE] == _USED:
            used[row[SOURCE]] += row["count"]
        else:
            refused[row[SOURCE], row[REASON]] += row["count"]
            examples.setdefault(row[REASON], row[RAW])
    return in_files, used, refused, examples


def _write_quarantine(staged_rows: DataFrame, files: Sequence[Path], quarantine: Path) -> None:
    from pyspark.sql import functions as F

    names = F.array(*(F.lit(_shown(path)) for path in files))
    staged_rows.filter(F.col(_FATE) == _REFUSED).select(
        F.col(REASON).alias("reason"),
        F.col(RAW).alias("raw"),
        F.replace(SOURCE, F.lit(SOURCE_PARTS), F.lit("-")).alias("source"),
        F.element_at(names, F.col(FILE) + 1).alias("file"),
    ).write.mode("overwrite").parquet(str(quarantine))


def _shown(path: Path) -> str:
    """Return a path as text, of which a name of a file may have none."""
    return os.fsencode(path).decode("utf-8", "replace")


def order(rows: DataFrame, arrival: str | None, staged: Path, count: int, folder: Path) -> None:
    """Write the parsed rows to ``folder`` in ``count`` range partitions, a file for each source in each.

    A task writes the files of all sources side by side, so it sorts its rows by arrival alone.
    """
    from pyspark.sql import functions as F

    staged_rows = rows.sparkSession.read.schema(rows.withColumn(_FATE, F.lit("")).schema).parquet(
        escaped(staged)
    )
    by = [*([arrival] if arrival else []), FILE, BLOCK, ROW]
    with as_trace_errors("the rows could not be put in order"):
        (
            staged_rows.filter(F.col(_FATE) == _USED)
            .drop(REASON, RAW, _FATE)
            .repartitionByRange(count, *by)
            .sortWithinPartitions(*by)
            .drop(FILE, BLOCK, ROW)
            .write.mode("overwrite")
            .partitionBy(SOURCE)
            .parquet(str(folder))
        )
