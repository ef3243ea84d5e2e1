"""Close names: a hint for a name that is not known; and the modules that list the public ones."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["SHELVES", "closest_or_all", "did_you_mean", "renamed"]

SHELVES = (
    "windows", "aggregates", "joins", "policies", "triggers", "thesis", "rewrites", "operators",
    "sources", "sinks", "formats", "traces", "query", "outcomes", "service", "spark", "errors",
    "lab", "extend", "testing",
)  # fmt: skip
"""The shelves, modules of the package.  ``operators`` repeats names of others, which come before it here."""

_MOST = 40


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """Return the name that was meant, as the end of a message, or nothing; capitals are ignored.

    >>> did_you_mean("colum", ["column", "at"])
    '; did you mean column?'
    >>> did_you_mean("zzz", ["column"])
    ''
    """
    by_lower = {str(name).lower(): name for name in reversed([*known])}
    close = get_close_matches(str(given).lower(), [*by_lower], 1, 0.6)
    if not close:
        return ""
    name = by_lower[close[0]]
    return f"; did you mean {name if str(name).strip() == name else repr(name)}?"


def closest_or_all(given: object, known: Iterable[object]) -> str:
    """Return the name that was meant, or else all that there are, as the end of a message.

    >>> closest_or_all("colum", ["column", "at"]), closest_or_all("zzz", ["column", "at"])
    ('; did you mean column?', '; there are column, at')
    """
    known = [*known]
    few = ", ".join(map(str, known)) if len(known) <= _MOST else f"{len(known)} others"
    return did_you_mean(given, known) or f"; there are {few or 'none'}"


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
