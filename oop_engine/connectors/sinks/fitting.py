"""Fitting rows: those that a server takes, where one statement with all of them fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

__all__ = ["refused_rows"]

T = TypeVar("T")
_MOST = 100
"""Rows that are refused one after the other, with none taken, until all count as refused."""


async def refused_rows(
    rows: Sequence[T],
    attempt: Callable[[Sequence[T]], Awaitable[None]],
    of_a_row: Callable[[Exception], bool],
) -> list[tuple[T, Exception]]:
    """Write rows by halves, and return those that are refused, each with its error.

    ``attempt`` writes some rows, or none of them and raises; it is called in the order of the rows.  Errors that are
    not ``of_a_row`` are raised, and so is the first one if several rows are refused and none is taken.
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
            if len(refused) == _MOST and not taken:
                raise
        else:
            taken += len(part)

    if rows:
        await write(rows)
    if len(refused) == len(rows) > 1:
        raise refused[0][1]
    return refused
