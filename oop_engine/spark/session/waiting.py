"""Waiting for Spark so that Ctrl-C and SIGTERM end it cleanly."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread, current_thread, main_thread
from typing import NoReturn

__all__ = ["interruptible", "terminable"]

ENDS_WITHIN_S = 20


def interruptible(work: Callable[[], object], stop: Callable[[], object]) -> None:
    """Do ``work`` and raise its exception; on Ctrl-C call ``stop``, so that it ends.

    It is done in another thread: an interrupt within a call to the JVM leaves its connection half read, and
    all calls on the way out fail, with a page of tracebacks.
    """
    failed: list[BaseException] = []
    ended = Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    try:
        Thread(target=run, name="oop-engine-waits-for-spark", daemon=True).start()
        ended.wait()
    except BaseException:
        with suppress(Exception):  # a JVM that got the same signal answers nothing useful
            stop()
        ended.wait(ENDS_WITHIN_S)
        raise
    if failed:
        raise failed[0]


@contextmanager
def terminable() -> Iterator[None]:
    """End the block at SIGTERM as at Ctrl-C: with an exception, so that nothing is left behind.

    Only where SIGTERM has no handler yet, and in the main thread, which gets signals.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)
