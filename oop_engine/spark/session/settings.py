"""Settings of Spark that we make, and those that we ask of a session that somebody else has made."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

from oop_engine.core.errors import SetupError, not_installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check", "check_batches", "check_packages", "is_local", "settings_for", "shown"]

OLDEST = (4, 3)
_SECRET = re.compile(r"secret|passw|token|credential|(access|private|account|api)[._-]?key", re.IGNORECASE)
PACKAGES = {"pyspark": "pyspark", "pandas": "pandas", "google.protobuf": "protobuf"}
STREAMING = "org.apache.spark.sql.execution.streaming"

# Our stateful operators need these; they can still be set in a session that runs.
NEEDED = {"spark.sql.streaming.stateStore.providerClass": f"{STREAMING}.state.RocksDBStateStoreProvider"}

ANYWHERE = (
    NEEDED
    | {
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # punctuation is data: nothing follows by itself
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.adaptive.enabled": "false",  # it would merge the partitions that key groups are spread over
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
)

# Only where driver, workers and checkpoint are on this machine.  The file manager that Spark takes by
# itself starts two processes for each file of a checkpoint; this one relies on renames being atomic.
ON_THIS_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",  # with a secret that Spark makes for each session of this machine
    # Shuffled pages stay on this machine: pages of numbers that hardly get smaller, a checksum of each row.
    "spark.shuffle.compress": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
}

# Half a session's start goes into compiling for a speed that a short run never gets back.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
JVM_OPTIONS = "spark.driver.extraJavaOptions"

# Pages are large arrays, for which the collector that Java takes by itself works beside the tasks all the time.
LOCAL_JVM = "-XX:+UseParallelGC"


_INSTALL = "pip install 'oop-engine[spark,java]', or in a clone pip install '.[spark,java]'"

DAEMON = {"spark.python.daemon.module": "oop_engine.spark.tasks.daemon"}


def settings_for(
    master: str, folder: Path | None = None, *, quick: bool = False, given: dict[str, str]
) -> dict[str, str]:
    """Return all settings of a session: ours, and on top of them those given.

    ``folder``: a place of this machine for files that Spark writes beside results, where the JVM and the Python workers
    of a local master are started by us; None: by ``spark-submit``.
    """
    settings = {"spark.master": master} | ANYWHERE | (ON_THIS_MACHINE if is_local(master) else {})
    if folder is not None and is_local(master):
        places = {"spark.local.dir": "local", "spark.sql.warehouse.dir": "warehouse"}
        settings |= DAEMON | {name: str(folder / place) for name, place in places.items()}
    settings |= given
    options = given.get(JVM_OPTIONS, "")
    if quick:
        settings[JVM_OPTIONS] = f"{QUICK_JVM} {options}".strip()
    elif is_local(master) and "GC" not in options:
        settings[JVM_OPTIONS] = f"{LOCAL_JVM} {options}".strip()
    return settings


def is_local(master: str) -> bool:
    """Return whether the workers of a master are threads of the driver."""
    return master == "local" or master.startswith("local[")


def shown(name: str, value: str) -> str:
    """Return a setting as it may be shown: the value is left out if there may be a secret in it."""
    return f"{name}={'(not shown)' if _SECRET.search(name) else value}"


def check_packages() -> None:
    """Raise ``SetupError`` if a Python package that Spark needs is not installed."""
    missing = [name for module, name in PACKAGES.items() if not _is_installed(module)]
    if missing:
        place = "Spark"
        raise not_installed(place, ", ".join(missing), "spark,java")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even its parent
        return False


def check(session: SparkSession) -> None:
    """Make sure that ``session`` can run our graphs; set the options that can be set while it runs.

    It is left as it is but for the needs of our operators: RocksDB as the store of
    state.  Raises ``SetupError`` if it is too old, or if that cannot be set.
    """
    if _numbers(session.version) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        msg = f"Spark {session.version} is too old, {wanted} is needed: {_INSTALL}"
        raise SetupError(msg)
    for name, value in NEEDED.items():
        if session.conf.get(name) == value:
            continue
        if not session.conf.isModifiable(name):
            msg = f"this Spark session must have {name}={value}: set it when the session is made"
            raise SetupError(msg)
        session.conf.set(name, value)


def check_batches(session: SparkSession) -> None:
    """Raise ``SetupError`` if ``session`` does not limit batches of Arrow, which sources in Python need."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    if (value := str(session.conf.get(name))).lstrip("-").isdigit() and int(value) <= 0:
        msg = f"this Spark session has {name}={value}, with which Spark reads no source in Python: set it to 10000"
        raise SetupError(msg)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in version.split(".")[:2])
