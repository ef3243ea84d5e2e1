"""In memory: results are gathered, for tests and notebooks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from oop_engine.connectors.sink import LiveSink, Prepared
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema

__all__ = ["Gathered"]


class Gathered(LiveSink):
    """Keeps the rows that have been committed in ``rows``, as dictionaries, in the order of their epochs.

    The same object may be given to the next ``serve`` over the same checkpoint: it stands for a system outside of the
    process, which has transactions.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._pages: dict[int, list[Page]] = {}
        self._prepared: dict[tuple[str, int], list[Page]] = {}
        self._run = ""

    async def open(self, schema: Schema, run: str, prepared: Collection[Prepared]) -> None:
        """Forget pages that belong to no checkpoint."""
        committed = {tuple(each) for each in prepared}
        self._pages, self._run = {}, run
        self._prepared = {
            key: pages for key, pages in self._prepared.items() if key[0] != run or key in committed
        }

    async def write(self, epoch: int, page: Page) -> None:
        """Keep a page."""
        self._pages.setdefault(epoch, []).append(page)

    async def prepare(self, epoch: int) -> Prepared:
        """Set the pages of an epoch apart."""
        if epoch not in self._pages:
            return None
        self._prepared[self._run, epoch] = self._pages.pop(epoch)
        return [self._run, epoch]

    async def commit(self, prepared: Prepared) -> None:
        """Show the rows of an epoch."""
        for page in self._prepared.pop(tuple(prepared), ()):
            self.rows += page.to_pylist()
