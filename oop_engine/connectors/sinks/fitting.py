"""Fitting rows: those that a server takes, where one statement with all of them fails.

A row that a server refuses is a dead letter; a sink whose every row is refused has a wrong table, and ends.  Epochs may
have one row each, so rows are counted over all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

__all__ = ["RefusedInARow", "refused_rows"]

T = TypeVar("T")
_AT_FIRST, _MOST = 10, 100


class RefusedInARow:
    """Counts rows that a server refuses with none taken in between, over the epochs of a service.

    Ten end it before the first row is taken, and a hundred later; so do all of an epoch that has several, at first.
    """

    def __init__(self) -> None:
        self._count, self._took = 0, False

    @property
    def most(self) -> int:
        """How many more rows may be refused until the error is raised."""
        return (_MOST if self._took else _AT_FIRST) - self._count

    def end_epoch(self, errors: Sequence[Exception], taken: int) -> None:
        """Count the rows of an epoch, or of a page; raise the first of the ``errors`` if the table is wrong."""
        if taken:
            self._count, self._took = 0, True
        elif errors:
            if len(errors) >= self.most or (len(errors) > 1 and not self._took):
                raise errors[0]
            self._count += len(errors)


async def refused_rows(
    rows: Sequence[T],
    attempt: Callable[[Sequence[T]], Awaitable[None]],
    of_a_row: Callable[[Exception], bool],
    most: int = _MOST,
) -> list[tuple[T, Exception]]:
    """Write rows by halves, and return those that are refused, each with its error.

    ``attempt`` writes some rows, or none of them and raises; it is called in the order of the rows.  Errors that are
    not ``of_a_row`` are raised, and so is the last one if ``most`` rows are refused and none is taken.
    O(rows + refused x log rows) rows are written.
    """
    refused, taken = list[tuple[T, Exception]](), 0

    async def write(part: Sequence[T]) -> None:
        nonlocal taken
        try:
            await attempt(part)
        except Exception as error:
            if not of_a_row(error):
                raise
            if len(part) > 1:
                await write(part[: len(part) // 2])
                await write(part[len(part) // 2 :])
                return
            refused.append((part[0], error))
            if len(refused) >= most and not taken:
                raise
        else:
            taken += len(part)

    if rows:
        await write(rows)
    return refused
