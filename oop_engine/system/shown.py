"""Shown: text of anybody for a terminal, which must see control characters and not obey them."""

from __future__ import annotations

import re

__all__ = ["shown"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    r"""Return ``text`` with control characters as they are written in a program.

    >>> print(shown("a\x1b[31m"))
    a\x1b[31m
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
