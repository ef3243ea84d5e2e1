"""Signals end a query that follows its sources, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from oop_engine import write_trace
from tests.children import MOST_S
from tests.parts.spark.killed_query import SCHEMA, pages
from tests.parts.spark.processes import Running
from tests.parts.spark.test_kill import blind


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes as Linux has them")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_query_that_follows(
    sent: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a terminal: the signal goes to all processes in the foreground."""
    (tmp_path / "left").mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    for number, given in enumerate(pages(1)):
        write_trace(tmp_path / "left" / f"{number:03d}.msgpack", SCHEMA, [given])
    arguments = [str(tmp_path), "delta", "follow"]
    with Running("tests.parts.spark.killed_query", *arguments, log=tmp_path / "log") as running:
        assert len(running.lines(1)) == 1
        os.killpg(running.process.pid, sent)
        code = -sent if sent == signal.SIGINT else 128 + sent
        assert running.wait(MOST_S) == code, running.log.read_text()
        assert running.left_after(MOST_S) == []
    said = running.log.read_text()
    if sent == signal.SIGINT:
        assert said.splitlines()[-1] == "KeyboardInterrupt"
        assert said.count("Traceback") == 1
    else:
        assert said == ""
    assert "py4j" not in said
    assert list((tmp_path / "temporary").iterdir()) == []
    assert blind(tmp_path / "results" / "out")
