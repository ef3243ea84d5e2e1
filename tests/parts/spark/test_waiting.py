"""What is waited for ends with what it raised; an interrupt stops it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread

import pytest

from oop_engine.spark.session.waiting import interruptible, terminable
from tests.children import MOST_S


def test_it_is_done_in_another_thread() -> None:
    seen = []
    interruptible(lambda: seen.append(current_thread()), stop=lambda: pytest.fail("nobody interrupted"))
    assert seen[0] is not main_thread()


def test_what_it_raises_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, stop=lambda: pytest.fail("nobody interrupted"))


@contextmanager
def cleared(left: list[str]) -> Iterator[None]:
    try:
        yield
    finally:
        left.append("cleared")


@pytest.mark.skipif(sys.platform == "win32", reason="it sends a signal to itself")
def test_sigterm_ends_it_as_an_interrupt_does() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    left: list[str] = []
    try:
        with pytest.raises(SystemExit) as ended, terminable(), terminable(), cleared(left):
            os.kill(os.getpid(), signal.SIGTERM)
        assert (ended.value.code, left) == (143, ["cleared"])
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with terminable():  # somebody has said what it does
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.skipif(sys.platform == "win32", reason="it sends a signal to itself")
def test_an_interrupt_stops_it() -> None:
    begun, stopped, ended = Event(), Event(), Event()

    def work() -> None:
        begun.set()
        os.kill(os.getpid(), signal.SIGINT)  # as a terminal does: to the process, not to this thread
        assert stopped.wait(MOST_S)
        ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(work, stopped.set)
    finally:
        signal.signal(signal.SIGINT, before)
    assert begun.is_set()
    assert ended.is_set()
