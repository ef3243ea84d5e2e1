"""Running a graph on Apache Spark, through PySpark; nothing of it is loaded before it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.spark.io.sink import (
        BatchResults as BatchResults,
    )
    from oop_engine.spark.io.sink import (
        Receipt as Receipt,
    )
    from oop_engine.spark.io.sink import (
        Sink as Sink,
    )
    from oop_engine.spark.io.sink import (
        SinkWork as SinkWork,
    )
    from oop_engine.spark.io.sinks import (
        Delta as Delta,
    )
    from oop_engine.spark.io.sinks import (
        ForeachBatch as ForeachBatch,
    )
    from oop_engine.spark.io.sinks import (
        Memory as Memory,
    )
    from oop_engine.spark.io.sinks import (
        Parquet as Parquet,
    )
    from oop_engine.spark.run import SparkOutcome as SparkOutcome
else:
    __getattr__, __dir__ = shelf(__name__)
