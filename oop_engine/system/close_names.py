"""Close names: a hint for a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return a question with the closest known name, capitals ignored; "" if none is close.

    >>> did_you_mean("hots", ["ts", "host"]), did_you_mean("x", ["host"])
    ("did you mean 'host'?", '')
    """
    by_lower = {str(each).lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]!r}?" if close else ""
