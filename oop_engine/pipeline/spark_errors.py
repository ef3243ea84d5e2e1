"""Errors of Spark about the user's data or expressions, as a ``TraceError`` of one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from oop_engine.core.errors import TraceError
from oop_engine.pipeline.cells import LINK
from oop_engine.spark.session.failures import failure_of

__all__ = ["as_trace_errors"]


def as_trace_errors(what: str, files: Sequence[Path] = ()) -> AbstractContextManager[None]:
    """Turn errors of Spark into a ``TraceError`` in the name of ``what``; ``files``: the input files.

    Such as DIVIDE_BY_ZERO of a computed column, or a file that is damaged.
    """

    def named(link: re.Match[str]) -> str:
        number = int(link[1])
        return str(files[number]) if number < len(files) else link[0]

    return failure_of(what, TraceError, lambda reason: LINK.sub(named, reason))
