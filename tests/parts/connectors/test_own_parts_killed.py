"""A source and a sink of one's own, those of the page about them, have each result once over any SIGKILL."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.children import started


def test_own_source_and_sink_have_each_result_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.parts.connectors.own_parts_killed", str(tmp_path)]
    with started(command) as process:
        printed, problems = process.communicate()
        assert process.returncode == 0, problems
    killed = json.loads(printed)
    assert len(killed) == 6
    assert min(killed.values()) > 0, killed
