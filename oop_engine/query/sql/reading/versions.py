"""Versions: results before they are final, as EMIT asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from oop_engine.core.errors import UsageError
from oop_engine.operators.triggers import AfterCount, AfterDelay, Emit

__all__ = ["emit_of"]


def emit_of(words: Sequence[str]) -> Emit | None:
    """Return the versions that EMIT asks for; None: final results alone.

    >>> emit_of(["FINAL"]), emit_of(["CHANGES"]).early
    (None, AfterCount(n=1))
    """
    upper = [word.upper() for word in words]
    if not upper or upper == ["FINAL"] or upper == ["ON", "WINDOW", "CLOSE"]:
        return None
    if upper == ["CHANGES"]:
        return Emit(early=AfterCount(1))
    if upper[0] == "EARLY" and len(words) == 2:
        return Emit(early=AfterDelay(words[1]))
    msg = f"sql: EMIT FINAL, EMIT CHANGES or EMIT EARLY '10 seconds'; got EMIT {' '.join(words)}"
    raise UsageError(msg)
