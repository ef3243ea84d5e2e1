"""Kernels are compiled ahead, and kept where that can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from oop_engine.cli.app import app
from oop_engine.lab import warm_kernels as warm
from oop_engine.operators.slicing.panes import pane_windows
from oop_engine.system.stopwatch import COMPILED
from tests.children import MOST_S


def warmed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(CliRunner().invoke(app, ["warm", "--json"]).stdout)
    return found


def test_what_is_warm_compiles_nothing() -> None:
    told = warmed()
    if any(c["kernels"] for c in told["compiled"]):  # they were not warm yet
        before = COMPILED.kernels
        told = warmed()
        assert COMPILED.kernels == before
    assert Path(told["folder"]).is_dir()
    named = {
        "joins by an integer",
        "windows, by a text",
        "windows of tuples",
        "sessions in two halves",
        "sessions that end",
    }
    assert named <= {c["what"] for c in told["compiled"]}
    assert all(c["kernels"] == 0 for c in told["compiled"])


def test_without_a_place_to_keep_them_kernels_are_there_all_the_same() -> None:
    """Numba refuses to declare a function whose cache has no place."""
    code = """
import numba.core.caching as caching
for name, place in list(vars(caching).items()):
    if name.endswith(("InTreeCacheLocator", "UserWideCacheLocator")):
        place.from_function = classmethod(lambda *_: None)
import oop_engine.operators.kernels
from oop_engine.operators.kernels.time_order import time_order
print(time_order.stats.cache_path)
"""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=MOST_S,
    )
    assert "oop-engine-kernels-" in done.stdout
    assert not Path(done.stdout.strip()).exists()
    assert "name a folder that can be written in NUMBA_CACHE_DIR" in done.stderr


def test_windows_of_many_groups_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = list[object]()
    sweep = pane_windows.PaneSweep

    def noted(*of: Any) -> pane_windows.PaneSweep:
        swept.append(of)
        return sweep(*of)

    monkeypatch.setattr(pane_windows, "PaneSweep", noted)
    monkeypatch.setattr(warm, "_of_few_keys", lambda: iter(()))
    counts = [len(swept) for _ in warm.warm_all()]
    assert 0 < counts[0] < counts[1]
