"""Parts of one's own of each kind, those of the pages about them, have each result once over any SIGKILL."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.children import started


@pytest.mark.slow
def test_parts_of_each_kind_have_each_result_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.parts.connectors.own_parts_killed", str(tmp_path)]
    with started(command) as process:
        printed, problems = process.communicate()
        assert process.returncode == 0, problems
    killed = json.loads(printed)
    assert len(killed) == 6 + 7 * 2
    assert min(killed.values()) > 0, killed
