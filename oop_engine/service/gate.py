"""Gate: many tasks go through, each for a moment, until one wants to be alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

__all__ = ["Gate"]


class Gate:
    """Who pushes is inside; who takes a checkpoint is alone."""

    def __init__(self) -> None:
        self._inside = 0
        self._holders = 0
        self.paused = self._closed = False
        self._going = asyncio.Event()
        self._going.set()
        self._open, self._empty = asyncio.Event(), asyncio.Event()
        self._open.set()
        self._empty.set()
        self._one = asyncio.Lock()
        self._each = _Inside(self)

    def pause(self, paused: bool = True) -> None:
        """Close the gate, or open it again; a task that holds it alone passes all the same."""
        self.paused = paused
        self._tell()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Close the gate for as long as the block takes, as if paused."""
        self._holders += 1
        self._tell()
        try:
            yield
        finally:
            self._holders -= 1
            self._tell()

    def _tell(self) -> None:
        if self.paused or self._holders:
            self._going.clear()
        else:
            self._going.set()

    def close(self) -> None:
        """Close the gate for good: a task that comes is cancelled, once more if it survived the first time."""
        self._closed = True

    def inside(self) -> _Inside:
        """Be one of many, for as long as the block takes."""
        return self._each

    async def enter(self) -> None:
        """Be inside from now on, until ``leave``."""
        while not (self._going.is_set() and self._open.is_set()):
            await self._going.wait()
            await self._open.wait()
        if self._closed:
            raise asyncio.CancelledError
        self._inside += 1
        self._empty.clear()

    def leave(self) -> None:
        """Be inside no more."""
        self._inside -= 1
        if not self._inside:
            self._empty.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Be the only one, once those inside have left."""
        async with self._one:
            self._open.clear()
            try:
                await self._empty.wait()
                yield
            finally:
                self._open.set()


class _Inside:
    """The block of those who are inside: one object for all, since each message goes through it."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __aenter__(self) -> None:
        await self._gate.enter()

    async def __aexit__(self, *error: object) -> None:
        self._gate.leave()
