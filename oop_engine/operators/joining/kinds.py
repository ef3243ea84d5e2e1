"""Kinds of joins: which rows leave for tuples that match, and for those that do not."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True)
class Kind:
    """``pairs``: joined tuples leave; else left ones alone, at their first match or for want of any.

    ``alone``: of which side (left, right) tuples leave that have matched nothing.
    """

    name: str
    pairs: bool
    alone: tuple[bool, bool]

    @property
    def marks(self) -> tuple[bool, bool]:
        """Of which side tuples are kept after a match, and have to remember that there was one."""
        return (self.pairs and self.alone[0], self.pairs and self.alone[1])

    def asks(self, side: int) -> bool:
        """Return whether it matters for a tuple of ``side`` that it has matched something on arrival."""
        return self.alone[side] or (side == 0 and not self.pairs)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("inner", pairs=True, alone=(False, False)),
        Kind("left", pairs=True, alone=(True, False)),
        Kind("full", pairs=True, alone=(True, True)),
        Kind("semi", pairs=False, alone=(False, False)),
        Kind("anti", pairs=False, alone=(True, False)),
    )
}
