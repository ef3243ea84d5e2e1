"""Claims on several runs: where there are none to check, nothing holds."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["every"]


def every(verdicts: Iterable[bool]) -> bool | None:
    """Return whether all are true; None, which is "not checked", where there are none.

    >>> every([True, True]), every([True, False]), every([])
    (True, False, None)
    """
    found = list(verdicts)
    return all(found) if found else None
