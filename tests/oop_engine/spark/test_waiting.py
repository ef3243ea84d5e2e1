"""What is waited for ends with what it raised; an interrupt stops it."""

from __future__ import annotations

import os
import signal
import sys
from threading import Event, current_thread, main_thread

import pytest

from oop_engine.runners.spark.waiting import interruptible


def test_it_is_done_in_another_thread() -> None:
    seen = []
    interruptible(lambda: seen.append(current_thread()), stop=lambda: pytest.fail("nobody interrupted"))
    assert seen[0] is not main_thread()


def test_what_it_raises_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, stop=lambda: pytest.fail("nobody interrupted"))


@pytest.mark.skipif(sys.platform == "win32", reason="it sends a signal to itself")
def test_an_interrupt_stops_it() -> None:
    begun, stopped, ended = Event(), Event(), Event()

    def work() -> None:
        begun.set()
        os.kill(os.getpid(), signal.SIGINT)  # as a terminal does: to the process, not to this thread
        assert stopped.wait(60)
        ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(work, stopped.set)
    finally:
        signal.signal(signal.SIGINT, before)
    assert begun.is_set()
    assert ended.is_set()
