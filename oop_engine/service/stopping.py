"""Stopping: SIGTERM and Ctrl-C end a service in order, a second one at once; all sources and sinks are closed."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from oop_engine.core.errors import ContractError
from oop_engine.runners.faults import cancelling, wrapped

__all__ = ["any_of", "cancelled", "close_all", "stopped_by_signals"]

_LOG = logging.getLogger("oop_engine")
_AGAIN_S = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_by_signals(
    stop: asyncio.Event, wanted: bool, checkpoint: str | None = None
) -> Iterator[asyncio.Event]:
    """Set ``stop`` at the first signal; the handlers that were there come back then, and at the end of the block.

    All services of a loop are stopped by one signal.  A signal that the application has given a handler of the loop
    (``loop.add_signal_handler``) stays its own: asyncio has no way to give that back, so a line of the log names it.
    ``checkpoint``: its place, for the line that is logged at the signal (None: there is none).
    Signals reach the main thread only; in another one, or unless ``wanted``, nothing is done.
    """
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    loop = asyncio.get_running_loop()
    signals = _SHARED.setdefault(loop, _Signals(loop))
    signals.add(stop, checkpoint)
    try:
        yield stop
    finally:
        signals.remove(stop)


class _Signals:
    """The signals of one loop, and the services that they stop.

    Handlers are those of ``signal.signal``: unlike one of the loop it can be seen whether it is still there.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._stops: dict[asyncio.Event, str | None] = {}
        self._before: dict[int, Any] = {}
        self._installed = False

    def add(self, stop: asyncio.Event, checkpoint: str | None) -> None:
        """Register one more service, which signals stop."""
        if not self._installed:  # also where others are stopping: the next signal is the first for this one
            self._install()
        self._stops[stop] = checkpoint

    def remove(self, stop: asyncio.Event) -> None:
        """Unregister a service; after the last one the previous handlers are restored."""
        self._stops.pop(stop, None)
        if not self._stops:
            self._uninstall()

    def _install(self) -> None:
        self._installed = True
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is None or "sighandler" in getattr(
                before, "__name__", ""
            ):  # of C; of asyncio or uvloop
                name = signal.Signals(number).name
                _LOG.warning(
                    "%s has a handler of the application, and does not stop the service: set stop there", name
                )
                continue
            self._before[number] = before
            signal.signal(number, self._came)

    def _uninstall(self) -> None:
        """Give handlers back, but for those that the application has replaced meanwhile."""
        self._installed = False
        before, self._before = self._before, {}
        for number, handler in before.items():
            if signal.getsignal(number) == self._came:
                signal.signal(number, handler)

    def _came(self, number: int, frame: object) -> None:
        self._uninstall()
        self._loop.call_soon_threadsafe(self._on_signal)  # which wakes the loop

    def _on_signal(self) -> None:
        for stop, checkpoint in self._stops.items():
            stop.set()
            _LOG.info("%s", _words(checkpoint))


_SHARED: WeakKeyDictionary[asyncio.AbstractEventLoop, _Signals] = WeakKeyDictionary()


def _words(checkpoint: str | None) -> str:
    if checkpoint is None:
        return "stopping: writing complete results (a second signal ends at once, and loses them)"
    return (
        f"stopping: writing a last checkpoint to {checkpoint} (a second signal ends at once: the state is safe then "
        "too, the next start restores the previous checkpoint)"
    )


async def cancelled(tasks: set[asyncio.Task[None]]) -> None:
    """End tasks; those that get over a cancellation, as some libraries do, are cancelled again."""
    while tasks := {task for task in tasks if not task.done()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_AGAIN_S)


async def any_of(stop: asyncio.Event, readers: Collection[asyncio.Task[None]]) -> None:
    """Wait until ``stop`` is set, or all readers are done."""
    stopping, waiting = asyncio.create_task(stop.wait()), set(readers)
    try:
        while waiting and not stop.is_set():
            done, _ = await asyncio.wait({stopping, *waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting -= done
    finally:
        stopping.cancel()


class _Part(Protocol):
    async def close(self) -> None: ...


async def close_all(parts: Mapping[str, _Part], failed: BaseException | None) -> None:
    """Close all sources and sinks, which are there by their names in messages.

    The first error is raised, unless the service has ``failed`` before: then each is a note of that, and a line of the
    log where it was cancelled, since such an error is not shown.  A caller that is cancelled meanwhile waits until all
    are closed; cancelled once more, it leaves the one that is being closed.
    """
    errors, cancels = list[BaseException](), 0
    for name, part in parts.items():
        closing = asyncio.create_task(_closed(name, part), name=f"{name}, closed")
        while not closing.done():
            try:
                await asyncio.wait([closing])
            except asyncio.CancelledError:
                cancels += 1
                if cancels > 1:
                    closing.cancel()
        if not closing.cancelled() and (error := closing.result()) is not None:
            errors.append(error)
    stopped = None if failed is not None or not cancels else asyncio.CancelledError()
    first = failed or stopped or (errors.pop(0) if errors else None)
    for error in errors:
        words = f"{'; '.join(error.__notes__)}: {type(error).__name__}: {error}"
        assert first is not None
        first.add_note(words)
        if isinstance(first, asyncio.CancelledError):
            _LOG.warning("%s", words)
    if failed is None and first is not None:
        raise first


async def _closed(name: str, part: _Part) -> BaseException | None:
    """Close one of them; return the error of that."""
    place = f"{name}: raised by close"
    try:
        closing: object = part.close()
        if not isawaitable(closing):
            msg = f"{name} ({type(part).__name__}): close must be asynchronous; got {closing!r:.60}: write async def"
            raise ContractError(msg)
        await closing
    except asyncio.CancelledError as error:
        if cancelling():
            raise
        own = wrapped(f"{name} ({type(part).__name__}): close", error)  # nobody has cancelled it
        own.add_note(place)
        return own
    except BaseException as error:
        error.add_note(place)
        return error
    return None
