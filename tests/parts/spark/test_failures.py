"""What fails on Spark is told as what it was, in words that need no Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from oop_engine.core.errors import EngineError, GraphError, OperatorError, SetupError, TraceError
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.operators.with_columns import WithColumns
from oop_engine.spark.query import SparkQuery
from oop_engine.spark.run import run_on_spark
from oop_engine.spark.session.failures import failure_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = """An error occurred while calling o7.parquet.
: SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a.gz.  SQLSTATE: KD001
\tat org.apache.spark.sql.execution.datasources.FileScanRDD.hasNext(FileScanRDD.scala:153)
Caused by: java.io.EOFException: Unexpected end of input stream
\tat org.apache.hadoop.io.compress.DecompressorStream.read(DecompressorStream.java:105)
"""
PYTHON = """Job aborted due to stage failure: Task 0 in stage 4.0 failed: org.apache.spark.api.python.PythonException:
Traceback (most recent call last):
  File "a.py", line 1, in f
    {error}

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:581)
"""


SOURCE = """[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source instance: Traceback (most recent call last):
  File "oop_engine/spark/io/source.py", line 14, in <module>
    import pyarrow as pa
ModuleNotFoundError: No module named 'pyarrow'
 SQLSTATE: 38000"""


class Unprintable(PySparkException):  # type: ignore[misc]
    def __str__(self) -> str:
        raise AssertionError("no JVM")


def raised(error: Exception, **more: object) -> BaseException:
    with pytest.raises(Exception) as told, failure_of(**more):  # type: ignore[arg-type]  # noqa: PT011
        raise error
    assert "\n" not in str(told.value)
    assert told.value.__suppress_context__, "nothing is shown that asks Java"
    return told.value


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (Py4JError(JAVA), SetupError, "Spark failed: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
         "file:///a.gz. (java.io.EOFException: Unexpected end of input stream)"),
        (PySparkException("most recent failure: java.lang.OutOfMemoryError: Java heap space"), SetupError,
         "Spark failed: java.lang.OutOfMemoryError: Java heap space"),
        (PySparkException("something else\nand more"), SetupError, "Spark failed: something else"),
        (Py4JNetworkError("Error while sending"), SetupError, "Spark failed: its Java process has ended"),
        (Unprintable("x"), SetupError, "Spark failed: its Java process has ended"),
        (PySparkException(PYTHON.format(error="\nZeroDivisionError: division by zero")), RuntimeError,
         "raised on Spark: ZeroDivisionError: division by zero"),
        (PySparkException(PYTHON.format(error=f"\n{TraceError.__module__}.TraceError: a.csv: row 7")), TraceError,
         "a.csv: row 7"),
        (PySparkException(PYTHON.format(error="\nModuleNotFoundError: No module named 'oop_engine.spark'")), SetupError,
         "the Python of Spark's workers (PYSPARK_PYTHON) has no package 'oop_engine': install it there"),
        (PySparkException(SOURCE), SetupError, "workers (PYSPARK_PYTHON) has no package 'pyarrow': install it there"),
        (PySparkException(PYTHON.format(error=f"\npy4j.protocol.Py4JJavaError: {JAVA}")), SetupError,
         "[FAILED_READ_FILE"),
    ],
)  # fmt: skip
def test_the_reason_is_told(error: Exception, kind: type[Exception], words: str) -> None:
    told = raised(error)
    assert type(told) is kind
    assert words in str(told)
    assert isinstance(told.__cause__, RuntimeError)


def test_as_what_and_in_whose_name_can_be_said() -> None:
    told = raised(
        Py4JError(JAVA), what="parse", kind=TraceError, shown=lambda text: text.replace("file:///a", "b")
    )
    assert isinstance(told, TraceError)
    assert str(told).startswith(
        "parse: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file b.gz."
    )


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "of the user's own"), GraphError("ours"), KeyError("k")]
)
def test_what_is_not_of_spark_goes_through(error: Exception) -> None:
    with pytest.raises(type(error)) as told, failure_of():
        raise error
    assert told.value is error


@pytest.mark.spark
@pytest.mark.parametrize("batch", [False, True])
def test_a_source_that_cannot_be_planned_is_one_line(
    spark: SparkSession, batch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark makes a source in Python with the Python of its workers, before anything runs."""

    def fail(*given: object) -> None:
        raise PySparkException(SOURCE)

    monkeypatch.setattr(SparkQuery, "_records", fail)
    graph, schema = Graph("planned"), Schema({"ts": pa.int64()}, "ts", "s")
    graph.sink("out", graph.source("source", schema))
    with pytest.raises(SetupError, match="has no package 'pyarrow'"):
        run_on_spark(graph, {"source": [Page.of(schema, {"ts": [1]})]}, spark=spark, batch=batch)


@pytest.mark.slow(keep=1)
@pytest.mark.spark
@pytest.mark.parametrize("batch", [False, True])
def test_an_operator_that_fails_keeps_its_reason(spark: SparkSession, batch: bool) -> None:
    schema = Schema({"ts": pa.int64()}, "ts", "s")
    graph = Graph("failing")
    graph.source("source", schema)
    divide = WithColumns({"v": lambda page: pa.array([1 // (page.num_rows - 1)] * page.num_rows, pa.int64())})
    graph.sink("out", graph.add("divide", divide, "source"))
    with pytest.raises(EngineError) as told:
        run_on_spark(graph, {"source": [Page.of(schema, {"ts": [1]})]}, spark=spark, batch=batch)
    assert isinstance(told.value, OperatorError)
    assert "operator 'divide' (WithColumns), page of 1 row" in str(told.value)
    assert "ZeroDivisionError" in str(told.value.__cause__)
