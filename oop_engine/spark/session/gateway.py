"""Starting the JVM of Spark, with the start script of PySpark, and the gateway to it.

PySpark would do both at once, with all settings in the arguments of a process and with nobody who could end it
before it has started.
"""

from __future__ import annotations

import os
import shlex
import signal
import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from oop_engine.spark.session.class_archive import is_archived

__all__ = ["LOG", "gateway_to_jvm"]

LOG = "spark.log"
ENDS_WITHIN_S, WRITES_WITHIN_S = 20, 300
_SETTINGS, _REACHED = "settings.properties", "gateway"
_LOOK_EVERY_S = 0.1
_ASCII = 128


@contextmanager
def gateway_to_jvm(settings: Mapping[str, str], folder: Path) -> Iterator[Any]:
    """Yield the gateway to a JVM of Spark that writes its log to ``folder``, and that has ended afterwards.

    Raises ``OSError`` if it cannot be started, or ends before it can be reached.
    """
    from pyspark import SparkContext, java_gateway

    file = folder / _SETTINGS
    _write(settings, file)
    given = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    with (folder / LOG).open("wb") as log:
        process = _started(["--properties-file", str(file), "--load-spark-defaults", *given], folder, log)
    gateway = None
    try:
        port, secret = _reached(process, folder / _REACHED)
        file.unlink()
        with _set({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
            gateway = java_gateway.launch_gateway()
        gateway.proc = process
        yield gateway
    finally:
        if gateway is not None:
            gateway.shutdown()
        most_s = WRITES_WITHIN_S if is_archived(settings) else ENDS_WITHIN_S
        _end(process, most_s if gateway is not None else 0)
        if (
            gateway is not None and SparkContext._gateway is gateway
        ):  # else the next session would look for this one
            SparkContext._gateway = SparkContext._jvm = None


def _write(settings: Mapping[str, str], file: Path) -> None:
    """Write settings for this user alone: there are passwords in them, and anybody can read arguments."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as new:
        new.writelines(f"{_property(name)} {_property(value)}\n" for name, value in settings.items())


def _property(text: str) -> str:
    """Return ``text`` as Java reads it from a file of properties."""
    units = (n for (n,) in struct.iter_unpack(">H", text.encode("utf-16-be")))
    return "".join(chr(n) if n < _ASCII and chr(n).isalnum() else f"\\u{n:04x}" for n in units)


def _started(arguments: list[str], folder: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    from pyspark.find_spark_home import _find_spark_home

    windows = os.name == "nt"
    script = Path(_find_spark_home(), "bin", "spark-submit.cmd" if windows else "spark-submit")
    variables = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / _REACHED)}
    return subprocess.Popen(
        [str(script), *arguments],
        stdin=subprocess.PIPE,  # the JVM ends with it
        stdout=log,
        stderr=log,
        env=os.environ | variables,
        preexec_fn=None if windows else _leave_interrupts_to_us,
    )


def _leave_interrupts_to_us() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _reached(process: subprocess.Popen[bytes], file: Path) -> tuple[int, str]:
    """Wait for the JVM to say where it can be reached; return port and secret."""
    while not file.exists():
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_EVERY_S)
            msg = "its JVM has ended before it could be reached"
            raise OSError(msg)
    with file.open("rb") as handed:
        port, length = struct.unpack(">ii", handed.read(8))
        secret = handed.read(length).decode()
    file.unlink()
    return port, secret


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def _end(process: subprocess.Popen[bytes], most_s: float) -> None:
    assert process.stdin is not None
    process.stdin.close()  # the sign for the JVM to end
    try:
        process.wait(most_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
