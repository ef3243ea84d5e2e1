"""Workers: the Python of a session that somebody else made, which must be able to run our operators."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from oop_engine.core.errors import SetupError
from oop_engine.spark.session.settings import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_workers"]

_PROBE = """
import sys
from importlib.util import find_spec
missing = [name for name in ("oop_engine", "pyarrow", "pandas") if find_spec(name) is None]
print("lacks " + ", ".join(missing) if missing else "%d.%d" % sys.version_info[:2])
"""
_MOST_S = 60


def check_workers(session: SparkSession) -> None:
    """Raise ``SetupError`` if the Python of a session on this machine is another one, which cannot run our operators.

    Spark takes ``python3`` of the ``PATH`` where ``PYSPARK_PYTHON`` was not set when the session was made.
    """
    context = session.sparkContext
    if not is_local(str(context.master)):
        return
    configured = str(context.pythonExec)
    program = shutil.which(configured)
    if program is not None and Path(program).parent == Path(sys.executable).parent:
        return
    problem = "is not there" if program is None else _problem(program)
    if problem:
        msg = (
            f"Python workers of the active Spark session run {program or configured!r}, which {problem}: install "
            f"'oop-engine[spark]' with that Python, or set PYSPARK_PYTHON={sys.executable} before the session is made"
        )
        raise SetupError(msg)


@lru_cache
def _problem(python: str) -> str:
    """Return why a Python cannot run our operators; "" if it can."""
    try:
        done = subprocess.run(
            [python, "-c", _PROBE], capture_output=True, text=True, timeout=_MOST_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start ({error})"
    answer, here = done.stdout.strip(), ".".join(map(str, sys.version_info[:2]))
    if done.returncode or not answer:
        return "does not start"
    if answer.startswith("lacks"):
        return answer
    return "" if answer == here else f"is Python {answer} and not {here}"
