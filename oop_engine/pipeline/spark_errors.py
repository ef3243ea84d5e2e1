"""What Spark raises about the user's data or expressions, as one line of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from oop_engine.core.errors import TraceError
from oop_engine.pipeline.cells import LINK
from oop_engine.spark.session.failures import failure_of

__all__ = ["told"]


def told(what: str, files: Sequence[Path] = ()) -> AbstractContextManager[None]:
    """Raise as a ``TraceError`` in the name of ``what`` what Spark raises; ``files``: those that went in.

    Such as DIVIDE_BY_ZERO of a computed column, or a file that is damaged.
    """

    def named(link: re.Match[str]) -> str:
        number = int(link[1])
        return str(files[number]) if number < len(files) else link[0]

    return failure_of(what, TraceError, lambda reason: LINK.sub(named, reason))
