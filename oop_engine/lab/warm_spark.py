"""Warm Spark: keep the classes that a session loads in an archive, before somebody waits for them.

A small graph runs in micro-batches, and once more as a batch over a DataFrame: the archive has the classes of both.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from oop_engine.core.errors import SetupError
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["spark_java", "warm_spark"]

_SCHEMA = Schema({"ts": pa.int64(), "k": pa.int64()}, "ts", "s")
_ROWS, _SEGMENTS = 64, 4


def spark_java() -> Path:
    """Return the home of the Java of sessions; raises ``SetupError`` if it, or a package of Spark, is missing."""
    from oop_engine.spark.session.java import java_home
    from oop_engine.spark.session.settings import check_packages

    check_packages()
    return java_home()


def warm_spark() -> Path:
    """Write the archive of classes for the Java and the Spark that sessions of this machine get; return its file.

    Sessions that we start with a local master map it from then on: their start takes half of its processor time.
    Another Java or Spark needs another one.  Takes a minute of a processor and 170 MB; nothing where it is there.
    Raises ``SetupError`` if a session is active, if Java or a package is missing, or if this Java takes no archive.
    """
    home = spark_java()
    from oop_engine.spark.io.sinks import Parquet
    from oop_engine.spark.run import run_on_spark
    from oop_engine.spark.session.class_archive import archive_of, check_taken, written
    from oop_engine.spark.session.session import active_session, session
    from oop_engine.spark.session.settings import JVM_OPTIONS

    if (file := archive_of(home)).exists():
        return file
    if active_session() is not None:
        msg = "warm: a Spark session is active, and classes are archived at the end of another one: stop it first"
        raise SetupError(msg)
    with (
        written(home) as options,
        tempfile.TemporaryDirectory(prefix="oop-engine-warm-") as folder,
        session("local[2]", {JVM_OPTIONS: options}, app="oop-engine warm", quick=True) as spark,
    ):
        run_on_spark(_graph(), {"in": iter(_pages())}, spark=spark, sink=Parquet(Path(folder, "out")))
        rows = spark.createDataFrame(pa.Table.from_batches([page.batch for page in _pages()]))
        run_on_spark(_graph(), {"in": rows}, spark=spark, batch=True)
        class_path = spark.sparkContext._jvm.java.lang.System.getProperty("java.class.path")
    check_taken(home, class_path)
    return file


def _graph() -> Graph:
    from oop_engine.operators.aggregates import Count
    from oop_engine.operators.edge.punctuate import Punctuate
    from oop_engine.operators.policies.policies import BoundedDisorder
    from oop_engine.operators.window_aggregate import WindowAggregate
    from oop_engine.operators.windows import Tumbling

    graph = Graph("warm")
    stream = graph.add("edge", Punctuate(BoundedDisorder("5 s"), "1 s"), graph.source("in", _SCHEMA))
    graph.sink("out", graph.add("counts", WindowAggregate(Tumbling("10 s"), {"n": Count()}, ("k",)), stream))
    return graph


def _pages() -> list[Page]:
    times = pa.array(range(_ROWS * _SEGMENTS))
    keys = [n % 3 for n in range(_ROWS)]
    return [Page.of(_SCHEMA, {"ts": times[at : at + _ROWS], "k": keys}) for at in range(0, len(times), _ROWS)]
