"""Failures on Spark, raised with their reason, in words that outlive its Java process.

    an error of ours, in a task or at the driver in the name of one    as it was
    a package that the Python there does not have                      ``SetupError`` with the way out
    another error of Python there                                      ``RuntimeError``: a bug, to be shown whole
    a failure of Spark itself, Java or the machine                     one line with the reason

An exception of PySpark asks Java for its text when it is printed, which may be after the session has ended.
So the text is taken at once, and ``__cause__`` has all of it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from oop_engine.core import errors
from oop_engine.core.errors import EngineError, SetupError

__all__ = ["failure_of"]

_OURS = re.compile(rf"{re.escape(errors.__name__)}\.(\w+): (.*)")
_TRACE = "Traceback (most recent call last):\n"
_OF_SPARK = ("py4j.", "pyspark.")
_CONDITION = re.compile(r"\[[A-Z_0-9]+(?:\.[A-Z_0-9]+)*\] .*")
_AROUND = ("[STREAM_FAILED]", "[FOREACH_BATCH")
_ROOT = re.compile(r"^(?:Caused by|.*most recent failure): (.*)", re.MULTILINE)
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_GONE = "its Java process has ended: it was killed, or needs more memory (spark.driver.memory)"
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)")
_LONGEST = 600


@contextmanager
def failure_of(
    what: str = "Spark failed",
    kind: type[EngineError] = SetupError,
    shown: Callable[[str], str] = str,
) -> Iterator[None]:
    """Raise the failure of a task, of Java, or on the way there, as the table above has it.

    ``what`` and ``kind``: first words and type of an error that is neither ours nor Python's.  ``shown`` rewrites its
    reason.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
        return
    except (PySparkException, Py4JError, ConnectionError) as error:
        if isinstance(error, ConnectionError) and not _of_gateway(error):
            raise
        text = _text(error)
    failure = _of_ours(text) or _of_python(text) or kind(f"{what}: {shown(_reason(text))}")
    raise failure from RuntimeError(text)


def _of_gateway(error: BaseException) -> bool:
    return any("py4j" in frame.filename for frame in traceback.extract_tb(error.__traceback__))


def _text(error: Exception) -> str:
    if isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError":
        return _GONE
    try:
        return f"{error}\n{getattr(error, '_stackTrace', '')}"
    except Exception:  # it asks a process that is gone
        return _GONE


def _of_ours(text: str) -> EngineError | None:
    """Return the last error of ours in ``text``, a trace from a task."""
    errors_of_ours = _OURS.findall(text)
    if not errors_of_ours:
        return None
    name, message = errors_of_ours[-1]
    kind = getattr(errors, name, EngineError)
    return kind(message) if issubclass(kind, EngineError) else None


def _of_python(text: str) -> RuntimeError | SetupError | None:
    """Return the last error of Python in ``text``, unless it only wraps one of Spark."""
    _, mark, after = text.rpartition(_TRACE)
    last = next((line for line in after.splitlines() if line[:1].strip()), "")
    if not mark or last.startswith(_OF_SPARK):
        return None
    if missing := _MISSING.match(last):
        msg = (
            f"the Python of Spark's workers (PYSPARK_PYTHON) has no package {missing[1]!r}: install it there, as "
            f"'oop-engine[spark]' does with all that it needs, or send an environment along with spark.archives"
        )
        return SetupError(msg)
    return RuntimeError(f"raised on Spark: {last}")


def _reason(text: str) -> str:
    """Return the condition of Spark for an error, and its root cause."""
    named = [line for line in _CONDITION.findall(text) if not line.startswith(_AROUND)]
    roots = _ROOT.findall(text)
    last = named[-1] if named else next((line for line in text.splitlines() if line.strip()), "")
    root = roots[-1] if roots else ""
    if not named and root:
        last, root = root, ""
    reason = last if not root or last in root or root in last else f"{last} ({root})"
    reason = " ".join(_STATE.sub("", reason).split())
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}..."
