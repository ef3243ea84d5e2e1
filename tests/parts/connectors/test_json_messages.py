"""JSON messages: the kernel that reads rows of one form is loaded where no turn of an event loop waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from oop_engine import Page, Schema
from oop_engine.connectors.formats.json_messages import JsonMessages
from oop_engine.traces.formats.alike import block, kernel
from tests.children import MOST_S

SCHEMA = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The kernel, which cannot be loaded before its gate is open, and the threads that called it."""
    gate, read, callers = threading.Event(), kernel.read_alike, list[threading.Thread]()

    def read_alike(*args: Any) -> Any:
        callers.append(threading.current_thread())
        assert gate.wait(MOST_S)
        return read(*args)

    monkeypatch.setattr(block, "read_alike", read_alike)
    monkeypatch.setattr(block, "_AFTER", 1)
    monkeypatch.setattr(block, "_LEAST_BYTES", 1)
    block._loading.cache_clear()
    yield gate, callers
    gate.set()
    block._loading.cache_clear()


def rows(messages: JsonMessages) -> list[dict[str, Any]]:
    data = b"".join(b'{"ts": %d, "k": "a"}\n' % ts for ts in range(200))
    return [
        row for page in messages.messages(data) if isinstance(page, Page) for row in page.batch.to_pylist()
    ]


def test_the_kernel_is_loaded_on_a_thread_and_rows_do_not_wait_for_it(gate: Any) -> None:
    opened, callers = gate
    messages = JsonMessages(SCHEMA, "in", lambda *_: None)
    wanted = [{"ts": ts, "k": "a"} for ts in range(200)]
    assert rows(messages) == wanted
    assert threading.main_thread() not in callers
    opened.set()
    for thread in threading.enumerate():
        if thread in callers:
            thread.join(MOST_S)
    assert rows(messages) == wanted
    assert callers[-1] is threading.main_thread()
    assert len(callers) == 2
