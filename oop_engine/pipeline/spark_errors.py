"""What Spark raises about the user's data or expressions, as one line of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from oop_engine.errors import TraceError
from oop_engine.runners.spark.failures import failure_of

__all__ = ["told"]

_CONDITION = re.compile(r"\[([A-Z_]+(?:\.[A-Z_]+)*)\][^\n]*")


@contextmanager
def told(what: str) -> Iterator[None]:
    """Raise as a ``TraceError`` in the name of ``what`` an error to which Spark has given a name of its own.

    Such as DIVIDE_BY_ZERO of a computed column, or a file that is damaged.  All else goes through.
    """
    from pyspark.errors import PySparkException

    try:
        with failure_of():
            yield
    except PySparkException as error:
        found = _CONDITION.findall(str(error))
        if not found or "INTERNAL_ERROR" in found:
            raise
        lines = [match.group(0) for match in _CONDITION.finditer(str(error))]
        msg = f"{what}: {lines[-1]}"
        raise TraceError(msg) from error
