"""A process whose kernels are cached loads nothing that only a compilation needs; other kernels are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import environment

from oop_engine.system import kernel

ROOT = Path(__file__).resolve().parents[3]

KERNEL = """
import numpy as np
from oop_engine.system.kernel import njit


@njit(cache=True, nogil=True)
def summed(a):
    found = np.empty(len(a), a.dtype)
    total = found[:1].copy()
    total[0] = 0
    for n in range(len(a)):
        if a[n] < 0:
            raise ValueError("negative")
        total[0] += a[n]
        found[n] = total[0]
    return found
"""
RUN = """
import sys
import numpy as np
from kernel_of_a_test import summed

assert summed(np.arange(4)).tolist() == [0, 1, 3, 6]
try:
    summed(np.arange(-1, 4))
except ValueError as raised:
    assert raised.args == ("negative",)
else:
    raise SystemExit("no error")
print(summed.stats.cache_misses.total(), *(name in sys.modules for name in ("numba.np.arrayobj", "numba.np.linalg")))
for kind in sys.argv[1:]:
    assert summed(np.arange(4).astype(kind)).tolist() == [0, 1, 3, 6]
    print(summed.stats.cache_misses.total(), "numba.np.linalg" in sys.modules)
"""


@pytest.mark.slow
def test_kernels_of_the_cache_need_nothing_to_compile_with(tmp_path: Path) -> None:
    assert run(tmp_path) == ["1 True True"]
    assert run(tmp_path) == ["0 False False"]


@pytest.mark.slow
def test_what_is_not_in_the_cache_is_compiled_behind_what_is(tmp_path: Path) -> None:
    run(tmp_path)
    assert run(tmp_path, "f8") == ["0 False False", "1 True"]
    assert run(tmp_path, "f8", "i4") == ["0 False False", "0 False", "1 True"]


def test_a_numba_that_is_built_in_another_way_loads_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel._cache_class.__wrapped__() is not None
    monkeypatch.delattr(environment, "lookup_environment")
    assert kernel._cache_class.__wrapped__() is None


def run(folder: Path, *kinds: str) -> list[str]:
    """Call the kernel in a process of its own, with arrays of ``kinds`` at last; return its lines."""
    (folder / "kernel_of_a_test.py").write_text(KERNEL, encoding="utf-8")
    places = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *kinds],
        env=os.environ | places,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
