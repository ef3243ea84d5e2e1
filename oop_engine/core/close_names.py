"""Close names: a hint for a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean", "renamed"]


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """Return the name that was meant, as the end of a message, or nothing; capitals are ignored.

    >>> did_you_mean("colum", ["column", "at"])
    '; did you mean column?'
    >>> did_you_mean("zzz", ["column"])
    ''
    """
    by_lower = {str(name).lower(): name for name in reversed([*known])}
    close = get_close_matches(str(given).lower(), [*by_lower], 1, 0.6)
    return f"; did you mean {by_lower[close[0]]}?" if close else ""


def renamed(given: Iterable[object], known: Iterable[object]) -> str:
    """Return the hint for names of which some are not known: the known one that is not given, and is close.

    >>> renamed(["ads", "clicsk"], ["ads", "clicks"])
    "; did you mean clicks by 'clicsk'?"
    """
    given, known = [*given], [*known]
    free = [name for name in known if name not in given]
    for name in given:
        if name not in known and (hint := did_you_mean(name, free)):
            return f"{hint[:-1]} by {name!r}?"
    return ""
