"""Running a graph on Apache Spark, through PySpark; nothing of it is loaded before it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.spark.io.sink import (
        BatchResults as BatchResults,
        Receipt as Receipt,
        Sink as Sink,
        SinkWork as SinkWork,
    )
    from oop_engine.spark.io.sinks import (
        Delta as Delta,
        ForeachBatch as ForeachBatch,
        Memory as Memory,
        Parquet as Parquet,
    )
    from oop_engine.spark.run import SparkOutcome as SparkOutcome
else:
    __getattr__, __dir__ = shelf(__name__)
