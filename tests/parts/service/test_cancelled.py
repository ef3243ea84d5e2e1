"""Clients that are cancelled at any await, and services that are: ``make cancellations`` runs more seeds."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oop_engine import Local
from oop_engine.sources import Journal
from oop_engine.system.disk import Disk
from tests.simulation import cancelled_threads
from tests.simulation.cancelled import CALLS, cancel_in_a_service, cancel_in_an_application
from tests.simulation.cancelled_threads import ENDS, cancel_on_threads

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def many(cancel: Callable[[int], None]) -> None:
    for seed in range(100):
        cancel(seed)


def test_all_laws_hold_whoever_is_cancelled() -> None:
    CALLS.clear()
    for seed in range(30):
        cancel_in_an_application(seed)
        cancel_in_a_service(seed)
    assert min(CALLS["accepted"], CALLS["cancelled"], CALLS["refused"]) > 50, "calls do not end in all ways"


def test_rows_that_are_acknowledged_before_they_are_written_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep = Journal._keep

    def early(self: Journal, pack: Any, given: Any, position: int, waiting: Any) -> None:
        keep(self, pack, given, position, waiting)
        unkept: Any = self._source._unkept  # type: ignore[attr-defined]
        while unkept:
            done = unkept.popleft()[1]
            done.done() or done.set_result(None)

    monkeypatch.setattr(Journal, "_keep", early)
    with pytest.raises(AssertionError, match="a row that was accepted is lost"):
        many(cancel_in_a_service)


def test_a_cancelled_row_that_takes_those_of_others_with_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def alone(self: Local, source: str) -> None:
        await self._rows_soon(source)

    monkeypatch.setattr(Local, "_rows_sent", alone)
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        many(cancel_in_an_application)


def test_all_laws_hold_over_threads_and_files() -> None:
    ENDS.clear()
    for seed in range(3):
        cancel_on_threads(seed)
    assert ENDS["cancelled while a thread works"] > 5  # how many is a matter of threads


def test_a_service_that_leaves_its_threads_at_work_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancelled_threads, "on_thread", asyncio.to_thread)
    with pytest.raises(AssertionError, match=r"a thread still works|a thread still writes|it writes on"):
        many(cancel_on_threads)


def test_a_journal_whose_lock_is_taken_while_it_is_cancelled_gives_it_back(tmp_path: Path) -> None:
    inside, going = threading.Event(), threading.Event()

    class Slow(Disk):
        def lock(self, path: Path) -> Callable[[], None] | None:
            inside.set()
            going.wait(60)
            return super().lock(path)

    async def main() -> None:
        task = asyncio.ensure_future(anext(aiter(Journal([{"n": 1}], tmp_path, disk=Slow()).read(None))))
        await asyncio.to_thread(inside.wait)
        task.cancel()
        asyncio.get_running_loop().call_soon(going.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        release = Disk().lock(tmp_path / "lock")
        assert release is not None
        release()

    asyncio.run(main())
