"""Codes of a few short texts, all of them in one: as a Python text and a place in a dictionary each takes 130 bytes.

Every operator that knows groups has a table of its own, and mostly groups are few and their names short.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from oop_engine.system.knobs import knob

__all__ = ["FewTexts"]

_START, _END, _FIRST = (
    "\0",
    "\1",
    2,
)  # in no text, for they are not printable; codes are written from there on
_MOST = knob(__name__, "_MOST", 32)  # texts: one is searched for among all
_ROOM = knob(__name__, "_ROOM", 512)  # characters


class FewTexts:
    """Codes of distinct texts, 0, 1, 2... in order of first sight, as long as they are few, short and printable.

    >>> texts = FewTexts()
    >>> texts.encode(["b", "a", "b"], add=True), texts.encode(["a", None], add=False), list(texts)
    ([0, 1, 0], [1, -1], ['b', 'a'])
    """

    def __init__(self) -> None:
        self._all = ""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        return (part.partition(_END)[0] for part in self._all.split(_START)[1:])

    @property
    def nbytes(self) -> int:
        """Bytes of the texts and their codes."""
        return sys.getsizeof(self._all)

    def encode(self, values: Sequence[Any], *, add: bool) -> list[int] | None:
        """Return the code of each value, -1 if it is not known; ``add``: new ones get the next free codes.

        None: there was one that does not fit (those before it are known now).  O(values x characters known).
        """
        codes = []
        for value in values:
            code = self._find(value)
            if code < 0 and add:
                if not self._fits(value):
                    return None
                code = self._size
                self._all += f"{_START}{value}{_END}{chr(code + _FIRST)}"
                self._size += 1
            codes.append(code)
        return codes

    def _find(self, value: Any) -> int:
        if not (isinstance(value, str) and value.isprintable()):
            return -1
        at = self._all.find(f"{_START}{value}{_END}")
        return -1 if at < 0 else ord(self._all[at + len(value) + 2]) - _FIRST

    def _fits(self, value: Any) -> bool:
        return (
            isinstance(value, str)
            and value.isprintable()
            and self._size < _MOST
            and len(self._all) + len(value) + 3 <= _ROOM
        )
