"""Callback: results go to a function at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable

from oop_engine.connectors.sink import LiveSink
from oop_engine.core.page import Page

__all__ = ["Callback"]


class Callback(LiveSink):
    """Calls ``take`` with each page of results, as soon as it comes; it may be asynchronous, and then pushes back.

    At least once: the pages after the last checkpoint come again after a crash.  A ``LiveSink`` of your own, with
    ``prepare`` and ``commit``, takes each of them once.
    """

    def __init__(self, take: Callable[[Page], Awaitable[None] | None]) -> None:
        self._take = take

    async def write(self, epoch: int, page: Page) -> None:
        """Hand a page over."""
        if isawaitable(waiting := self._take(page)):
            await waiting
