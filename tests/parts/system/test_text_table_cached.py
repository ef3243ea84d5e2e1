"""Text keys in a process whose kernels come from a cache: a kernel is kept with copies of those that it calls."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oop_engine.operators.kernels

ROOT = Path(__file__).resolve().parents[3]
KERNELS = sorted(Path(oop_engine.operators.kernels.__path__[0]).rglob("*.py"))

LOOK_UP = """
import pyarrow as pa

from oop_engine.operators.kernels.texts import table
from oop_engine.operators.keys.text_table import TextTable

texts = [f"{turn:02}" + "k" * size for turn in range(20) for size in (0, 6, 13, 14, 15, 30, 40)]
page = pa.array(texts)
keys = TextTable(pa.string())
for add in (True, True, False):
    assert keys.encode(page, add=add).tolist() == list(range(len(texts)))
assert keys.values(keys.encode(page, add=False), pa.string()).equals(page)
print(sum(kernel.stats.cache_misses.total() for kernel in (table.encode, table.find)))
"""


@pytest.mark.slow
def test_kernels_from_a_cache_find_the_texts_that_they_learnt(tmp_path: Path) -> None:
    compiled = [looked_up(tmp_path) for _ in range(2)]
    assert compiled == [2, 0]


def looked_up(kernels: Path) -> int:
    """Look texts up in a process of its own, and return how many kernels it compiled."""
    places = {"NUMBA_CACHE_DIR": str(kernels), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", LOOK_UP], env=os.environ | places, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.parent.name + "-" + path.stem)
def test_no_kernel_makes_a_pointer_of_an_integer(path: Path) -> None:
    """Copies of such a kernel in its callers compute something else: ``kernels.texts.memory`` tells why."""
    assert not re.findall(r"inttoptr|\.ctypes\b|carray\(|address_as_void", path.read_text("utf-8"))
