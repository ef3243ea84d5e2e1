"""Waiting for Spark so that Ctrl-C ends it cleanly."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

__all__ = ["interruptible"]

ENDS_WITHIN_S = 20


def interruptible(work: Callable[[], object], stop: Callable[[], object]) -> None:
    """Do ``work`` and raise what it raised; on Ctrl-C call ``stop``, so that it ends.

    It is done in another thread: an interrupt within a call to the JVM leaves its connection half read, and
    all that is said on the way out fails, with a page of tracebacks.
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
        stop()
        ended.wait(ENDS_WITHIN_S)
        raise
    if failed:
        raise failed[0]
