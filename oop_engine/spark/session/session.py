"""A Spark session with our settings, and nothing left behind when it ends.

The JVM of Spark is started by us (``gateway.py``): with a Java that is found or provided (``java.py``), its
has to say in a file instead of on the terminal of the user, and all it writes beside results in one temporary
folder.  It dies with the session, and with this process.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from oop_engine.core.errors import SetupError
from oop_engine.spark.session.class_archive import mapped
from oop_engine.spark.session.gateway import LOG, gateway_to_jvm
from oop_engine.spark.session.java import java_home
from oop_engine.spark.session.settings import check, check_packages, is_local, settings_for, shown
from oop_engine.spark.session.waiting import terminable
from oop_engine.spark.session.workers import check_workers
from oop_engine.spark.tasks.daemon import LOADED, loaded_here

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["active_session", "session"]

SHUFFLE = "spark.sql.shuffle.partitions"
LINES_OF_LOG = 12

WORKER = """\
#!/bin/sh
PYTHONPATH={path}:"$PYTHONPATH" exec {python} "$@"
"""


@contextmanager
def session(
    master: str | None = None,
    settings: Mapping[str, object] | None = None,
    *,
    app: str = "oop-engine",
    quick: bool = False,
) -> Iterator[SparkSession]:
    """Yield a Spark session that our graphs can run in.

    A session that is active in this process is taken as it is, after a check, and is not stopped.
    Else a new one is made; on leaving, however, it is stopped with its queries, and its JVM and
    Python workers have ended.

    Parameters
    ----------
    master
        As Spark writes it: ``local[2]``, ``spark://host:7077``...  None: that of ``spark-submit``
        or of the active session, and where there is neither ``local[*]``.
    settings
        Any settings of Spark, on top of ours: ``{"spark.driver.memory": "4g"}``.
    app
        Name of the application.
    quick
        For tests and short replays: compile less (about half the processor time of a start; slower
        where the JVM itself works through rows).

    Raises
    ------
    SetupError
        A Java, a package or a setting is missing or too old, or Spark did not start.
    """
    check_packages()
    given = {name: _text(value) for name, value in (settings or {}).items()}
    if (running := active_session()) is not None:
        _check_same(running, master, given)
        check(running)
        check_workers(running)
        yield running
    elif "PYSPARK_GATEWAY_PORT" in os.environ:  # started by spark-submit, which has the JVM
        with _submitted(master, app, given) as made:
            yield made
    else:
        with _started(master or "local[*]", app, quick, given) as made:
            yield made


def active_session() -> SparkSession | None:
    """Return the Spark session that is active in this process, if there is one."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is None and SparkContext._active_spark_context is not None:  # made by another thread
        running = SparkSession.builder.getOrCreate()
    return running


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_same(running: SparkSession, master: str | None, given: dict[str, str]) -> None:
    wanted = given | ({"spark.master": master} if master else {})
    differ = [shown(k, v) for k, v in wanted.items() if running.conf.get(k, None) != v]
    if differ:
        msg = f"a Spark session is active with other settings than {', '.join(differ)}: stop it first"
        raise SetupError(msg)


@contextmanager
def _submitted(master: str | None, app: str, given: dict[str, str]) -> Iterator[SparkSession]:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized()  # without its JVM a SparkConf knows nothing of the submitted settings
    conf = SparkConf()
    master = master or str(conf.get("spark.master", "local[*]"))
    settings = {"spark.app.name": app} | settings_for(master, given={})
    named = {k: v for k, v in settings.items() if not conf.contains(k)} | given | {"spark.master": master}
    with SparkSession.builder.config(map=named).getOrCreate() as made:
        _spread(made, master, given_here=conf.contains(SHUFFLE) or SHUFFLE in given)
        check(made)
        yield made


@contextmanager
def _started(master: str, app: str, quick: bool, given: dict[str, str]) -> Iterator[SparkSession]:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    with ExitStack() as stack:
        stack.enter_context(terminable())
        folder = Path(tempfile.mkdtemp(prefix="oop-engine-spark-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        named, home = settings_for(master, folder, quick=quick, given=given), java_home()
        named = mapped(named, home) if is_local(master) else named
        conf = SparkConf(loadDefaults=False).setAll([*named.items()]).setAppName(app)
        stack.enter_context(_interrupts_as_before())
        _hush()
        with _environment(master, folder, home), _told(folder / LOG):
            gateway = stack.enter_context(gateway_to_jvm(named, folder))
            context = SparkContext(conf=conf, gateway=gateway)
        context._accumulatorServer.handle_error = _silent  # it prints a trace when the JVM is killed
        stack.callback(_forget, context)
        made = SparkSession(context)
        stack.callback(_stop, made)
        _spread(made, master, given_here=SHUFFLE in given)
        check(made)
        yield made


def _hush() -> None:
    """Stop PySpark from also printing its exceptions as JSON."""
    from pyspark.logger import PySparkLogger

    for kind in ("SQL", "DataFrame"):
        PySparkLogger.getLogger(f"{kind}QueryContextLogger").disabled = True


def _silent(*_: object) -> None:
    """Log nothing: whoever uses the session gets the error."""


def _spread(made: SparkSession, master: str, *, given_here: bool) -> None:
    """Have a partition a core where the cores are known from the start; Spark itself has 200 everywhere."""
    if is_local(master) and not given_here:
        made.conf.set(SHUFFLE, made.sparkContext.defaultParallelism)


def _stop(made: SparkSession) -> None:
    with suppress(Exception):  # the JVM may be gone, and whoever used it has the error
        for query in made.streams.active:
            with suppress(Exception):  # it may have failed, and its own caller has the error
                query.stop()
    with suppress(Exception), warnings.catch_warnings(action="ignore"):
        made.stop()
    type(made)._instantiatedSession = type(made)._activeSession = None  # not done where the JVM is gone


def _forget(context: SparkContext) -> None:
    """End a context, and leave nothing for the next one even if its JVM is gone."""
    with suppress(Exception):
        context.stop()
    type(context)._active_spark_context = None


@contextmanager
def _environment(master: str, folder: Path, home: Path) -> Iterator[None]:
    """Set the environment of a JVM and its Python workers, while they are started."""
    variables = {"JAVA_HOME": str(home)}
    if is_local(master):
        variables |= {"PYSPARK_PYTHON": str(_python(folder)), "SPARK_LOCAL_IP": "127.0.0.1"}
        variables[LOADED] = loaded_here()
    else:
        variables["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    variables["PYSPARK_DRIVER_PYTHON"] = sys.executable
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _python(folder: Path) -> Path:
    """Return the Python of the workers of this machine, which imports the modules of this process.

    A checkout, for example; and PySpark itself as it is installed.  Spark would put a zip file of
    PySpark in front of all, and every process would compile it anew: that is half the time of the
    first micro-batch.
    """
    if os.name == "nt":
        return Path(sys.executable)
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    script = folder / "python"
    script.write_text(WORKER.format(path=shlex.quote(path), python=shlex.quote(sys.executable)))
    script.chmod(0o700)
    return script


@contextmanager
def _interrupts_as_before() -> Iterator[None]:
    """Take back the handler of Ctrl-C of a Spark context, which would ask a JVM that is gone.

    And the end of a call to the JVM, by an interrupt or with the JVM, is raised: it is not logged as well.
    """
    logger = logging.getLogger()  # that py4j logs it with
    logger.addFilter(_is_not_of_py4j)
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        logger.removeFilter(_is_not_of_py4j)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


@contextmanager
def _told(log: Path) -> Iterator[None]:
    """Make one error of whatever goes wrong while Spark starts."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        lines = log.read_text(errors="replace").splitlines()[-LINES_OF_LOG:]
        msg = "\n    ".join([f"Spark did not start: {str(error).strip()}", *lines])
        raise SetupError(msg) from error
