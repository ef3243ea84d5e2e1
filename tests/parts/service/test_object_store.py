"""Checkpoints in an object store: the same order and the same fence as in a folder."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from oop_engine import UsageError, serve
from oop_engine.errors import SetupError
from oop_engine.runners.event_loop import run_async
from oop_engine.service.checkpoint_folder import CheckpointFolder, OwnerGone
from oop_engine.service.listing import checkpoints
from oop_engine.sinks import Gathered, PartFiles
from oop_engine.sources import FileTail
from oop_engine.system.object_disk import ObjectDisk, disk_of
from tests.children import MOST_S
from tests.parts.service.store_server import served_store
from tests.parts.service.test_checkpoint_folder import KINDS, manifest
from tests.parts.service.test_serve import counted, counts, endless, full, rows


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(SetupError, match=r"checkpoint s3://a/b needs obstore, .* \'oop-engine\[objects\]\'"):
        CheckpointFolder("s3://a/b")


@pytest.fixture(params=["memory", "local"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectDisk:
    store = pytest.importorskip("obstore.store", reason="obstore is not installed (the extra objects)")
    return ObjectDisk(store.MemoryStore() if request.param == "memory" else store.LocalStore(tmp_path))


def opened(disk: ObjectDisk, owner: str) -> CheckpointFolder:
    return CheckpointFolder("state", keep=2, disk=disk, clock=lambda: 1.0, owner=owner)


def test_records_are_found_and_an_older_owner_records_nothing(disk: ObjectDisk) -> None:
    old, new = opened(disk, "old"), opened(disk, "new")
    assert old.claim() is None
    for state in (b"one", b"two", b"two", b"three"):
        old.record(manifest(), {"count": state, "": b"runner"}, KINDS)
        old.collect()
    found = new.claim()
    assert found is not None
    assert new.states_of(found) == {"count": b"three", "": b"runner"}
    with pytest.raises(OwnerGone, match="new has taken it over"):
        old.record(manifest(), {"count": b"four", "": b""}, KINDS)
    assert not disk.create(Path(f"state/epochs/{new.number:07d}.json"), b"another")
    assert disk.create(Path("a"), b"x")
    assert disk.create(Path("a"), b"x")  # the answer to the first was lost
    names = disk.names(Path("state/states"))
    assert [name.partition("-")[0] for name in names] == ["0000002", "0000003", "0000004", "0000005"]
    [left] = disk.names(Path("state/states") / names[0])  # the state and the manifest are gone
    assert left.startswith("runner.")


def test_a_service_goes_on_from_an_object_store(disk: ObjectDisk) -> None:
    sink = Gathered()
    for items in (rows(0, 35), rows(0, 60)):
        done = asyncio.Event()
        made: Any = {"in": endless(items, done)}
        run_async(
            serve(counts(), made, {"out": sink}, checkpoint=opened(disk, "one"), stop=done, signals=False)
        )
    assert counted(sink.rows) == full(10, 20, 30, 40, 50)


def test_an_address_that_cannot_be_read_is_told() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed (the extra objects)")
    with pytest.raises(UsageError, match=r"checkpoint foo://x: .*give an address like s3://bucket/folder"):
        disk_of("foo://x")
    with pytest.raises(UsageError, match="memory:///: there is no checkpoint in it"):
        checkpoints("memory:///")


class There:
    """A store that fails with each of ``words`` first, once that is told it; ``asked``: how often it was asked."""

    def __init__(self, *words: str) -> None:
        self.words, self.asked = [*words], 0

    def list_with_delimiter(self, prefix: Any) -> Any:
        from obstore.exceptions import GenericError

        self.asked += 1
        if self.words:
            raise GenericError(self.words.pop(0))
        return {"common_prefixes": [], "objects": []}


AWAY = "HTTP error: error sending request\nat a line"


def known(store: There, monkeypatch: pytest.MonkeyPatch) -> ObjectDisk:
    """Return a disk on a store that has answered once; the next tries come at once."""
    pytest.importorskip("obstore", reason="obstore is not installed (the extra objects)")
    monkeypatch.setattr("oop_engine.system.object_disk._FIRST_S", 0.001)
    disk = ObjectDisk(There(), store)
    assert disk.names(Path("epochs")) == []
    return disk


def test_a_store_that_never_answered_is_an_error_of_one_line() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed (the extra objects)")
    disk = ObjectDisk(There(AWAY), There())
    with pytest.raises(SetupError, match="HTTP error: error sending request: check its address") as told:
        disk.names(Path("epochs"))
    assert "\n" not in str(told.value)
    assert isinstance(told.value, OSError)


def test_a_store_that_has_answered_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client itself does not ask again where an answer is cut in its middle."""
    store = There(AWAY, "Error getting list response body", "status code: 503 Slow Down", "status code: 429")
    assert known(store, monkeypatch).names(Path("epochs")) == []
    assert store.asked == 5


@pytest.mark.parametrize("leaves", [False, True])
def test_a_store_that_refuses_is_not_asked_again_nor_one_that_is_left(
    leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = There(AWAY if leaves else "Server returned non-2xx status code: 400 Bad Request")
    disk = known(store, monkeypatch)
    if leaves:
        disk.leave()
    with pytest.raises(SetupError, match="the object store of a checkpoint fails"):
        disk.names(Path("epochs"))
    assert store.asked == 1


@pytest.mark.parametrize("how", ["it is stopped", "it is cancelled"])
def test_a_service_ends_though_its_object_store_is_away(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The next service goes on from the checkpoint before, and each result is there once."""
    pytest.importorskip("obstore", reason="obstore is not installed (the extra objects)")
    objects, log = dict[str, bytes](), tmp_path / "in.jsonl"
    log.write_text('{"ts": 1, "key": "a"}\n')
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "planted")

    away, is_away = list[Exception](), ObjectDisk._is_away

    def noted(disk: ObjectDisk, error: Exception) -> bool:
        away.append(error)
        return is_away(disk, error)

    monkeypatch.setattr(ObjectDisk, "_is_away", noted)

    def served(stop: asyncio.Event, *, follow: bool) -> Any:
        return serve(
            counts(), {"in": FileTail(log, follow=follow)}, {"out": PartFiles(tmp_path / "out", "jsonl")},
            checkpoint="s3://bucket/state", every_s=0.05, stop=stop, signals=False,
        )  # fmt: skip

    async def main() -> None:
        stop = asyncio.Event()
        with served_store(objects) as port:
            monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{port}")
            serving = asyncio.ensure_future(served(stop, follow=True))
            while not (serving.done() or sum(key.startswith("state/epochs") for key in objects) > 1):
                await asyncio.sleep(0.01)
        with log.open("a") as file:
            file.write('{"ts": 15, "key": "a"}\n')
        while not (serving.done() or away):
            await asyncio.sleep(0.01)
        stop.set() if how == "it is stopped" else serving.cancel()
        await asyncio.wait({serving}, timeout=MOST_S / 2)
        assert serving.done(), "it does not end"
        assert serving.cancelled() or not serving.result().over
        with served_store(objects, port):
            assert (await served(asyncio.Event(), follow=False)).over

    run_async(main())
    lines = [
        json.loads(line)
        for part in (tmp_path / "out").glob("*.jsonl")
        for line in part.read_text().splitlines()
    ]
    assert counted(lines) == [(10, "a", 1), (20, "a", 1)]


def test_a_service_goes_on_when_its_object_store_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits with its next checkpoint; ``OOP_ENGINE_AWAY_S``: for how many seconds the store is away."""
    pytest.importorskip("obstore", reason="obstore is not installed (the extra objects)")
    objects, sink, done = dict[str, bytes](), Gathered(), asyncio.Event()
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "planted")

    async def slowly() -> AsyncIterator[Any]:
        for row in rows(0, 60):
            yield row
            while not seen.is_set():
                await asyncio.sleep(0.01)

    seen = asyncio.Event()

    async def main() -> float:
        with served_store(objects) as port:
            monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{port}")
            service = serve(
                counts(), {"in": slowly()}, {"out": sink}, checkpoint="s3://bucket/state", every_s=0.05, stop=done,
                signals=False,
            )  # fmt: skip
            serving = asyncio.create_task(service)  # type: ignore[arg-type]
            while not (serving.done() or any(key.startswith("state/epochs") for key in objects)):
                await asyncio.sleep(0.01)
        seen.set()
        await asyncio.sleep(float(os.environ.get("OOP_ENGINE_AWAY_S", "0.3")))
        assert not serving.done(), serving.result()
        with served_store(objects, port):
            back = time.monotonic()
            await serving
            return time.monotonic() - back

    took_s = run_async(main())
    print(f"object store: the service has ended {took_s:.1f} s after it is back")
    assert counted(sink.rows) == full(10, 20, 30, 40, 50, 60)
