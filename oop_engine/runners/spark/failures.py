"""Errors of tasks: what our code raised there is raised here, as what it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from oop_engine import errors
from oop_engine.errors import EngineError

__all__ = ["failure_of"]

_OURS = re.compile(r"oop_engine\.errors\.(\w+): (.*)")


@contextmanager
def failure_of() -> Iterator[None]:
    """Raise as an ``EngineError`` what failed in a task, or at the driver in the name of one, because of one."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if (found := _of_ours(str(error))) is not None:
            raise found from error
        raise


def _of_ours(text: str) -> EngineError | None:
    """Return the last error of ours that is told in ``text``, a trace from a task."""
    told = _OURS.findall(text)
    if not told:
        return None
    name, message = told[-1]
    kind = getattr(errors, name, EngineError)
    return kind(message) if issubclass(kind, EngineError) else None
