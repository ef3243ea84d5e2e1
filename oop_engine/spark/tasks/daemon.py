"""The process that PySpark forks its Python workers from, with all that our tasks need loaded.

PySpark's own daemon has nothing loaded, so every worker loads everything by itself.  And after each task
a worker looks through all of that for garbage: a tenth of a second of processor time, for six
tasks or more a micro-batch.  Here it is loaded once, and kept out of the search for garbage.

Spark starts it as ``python -m oop_engine.spark.tasks.daemon`` if ``spark.python.daemon.module`` names
so, which takes effect where the package is installed with the Python of the workers.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterable
from contextlib import suppress

__all__ = ["LOADED", "loaded_here", "preload"]

LOADED = "OOP_ENGINE_LOADED"
"""The variable of the environment that names modules to load, besides those of this runner."""

_OF_TASKS = (
    "pandas",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.worker",
    "oop_engine.spark.tasks.stage_task",
)


def loaded_here() -> str:
    """Return the modules of ours that this process has loaded: tasks will need most of them."""
    return " ".join(name for name in sorted(sys.modules) if name.partition(".")[0] == "oop_engine")


def preload(names: Iterable[str]) -> None:
    """Load modules, and keep all objects there are by now out of the search for garbage."""
    for name in names:
        with suppress(ImportError):  # whoever needs it will say so
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from pyspark.daemon import manager

    if "pyspark.worker" in sys.argv:  # others read no data
        preload([*_OF_TASKS, *os.environ.get(LOADED, "").split()])
    manager()
