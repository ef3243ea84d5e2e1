"""Machine code of Numba's cache runs without Numba, and gives what it gives with it; all else is left to Numba."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oop_engine.system.ready import numba_here, object_file
from oop_engine.system.ready.cache_file import UnknownError

ROOT = Path(__file__).resolve().parents[4]

KERNEL = """
from typing import NamedTuple

import numpy as np
from oop_engine.system.kernel import njit


class Place(NamedTuple):
    begin: int
    size: float


@njit(cache=True, nogil=True)
def summed(a, columns, place, scale, wanted):
    if scale < 0:
        raise ValueError("negative")
    total = 0.0 + columns[0][0] + columns[1][0]
    for n in range(place.begin, len(a)):
        total += a[n] * scale
    return total * place.size if wanted else total


@njit(cache=True)
def filled(wide, row):
    for n in range(wide.shape[1]):
        wide[row, n] += n


@njit(cache=True)
def doubled(a):
    return a + a


@njit(cache=True)
def temporary(many):
    return np.ones(many).sum()
"""
RUN = """
import sys
import numpy as np
import kernels_of_a_test as kernels

if "numba" in sys.argv:
    import numba
before = "numba" in sys.modules

def summed(a, scale=2, begin=0, wanted=True):
    columns = np.arange(3, 5), np.arange(4.0, 6.0)
    return kernels.summed(a, columns, kernels.Place(begin, 0.5), scale, wanted)

fixed = np.arange(9)
fixed.flags.writeable = False
found = [summed(np.arange(5)), summed(np.arange(5, dtype="u1"), 2.5, 1), summed(fixed, wanted=np.bool_(False))]
found += [summed(np.arange(9.0)[::2], scale=np.int32(3)), summed(np.arange(4, dtype="f4"), True)]
wide = np.zeros((2, 3))
kernels.filled(wide, 1)
kernels.filled(wide, 0)
kernels.filled(np.asfortranarray(wide), 0)
try:
    summed(fixed, -1)
except ValueError as raised:
    found += raised.args
print(found, wide.tolist(), before, "numba" in sys.modules and hasattr(sys.modules["numba"], "njit"))
"""
RESULTS = "[13.5, 16.0, 79.0, 33.5, 6.5, 'negative'] [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]"
CALLED_OFTEN = """
import kernels_of_a_test as kernels, numpy as np, sys, threading
from oop_engine.system.ready import ready_kernel
ready_kernel._MOST = 3
wide = np.zeros((2, 3))
began = []
for n in range(9):
    kernels.filled(wide, 1)
    began += [n] if not began and len(threading.enumerate()) > 1 else []
    for thread in threading.enumerate()[1:]:
        thread.join()
assert wide.tolist() == [[0, 0, 0], [0, 9, 18]]
print(began, "numba" in sys.modules and hasattr(sys.modules["numba"], "njit"))
"""
GOES_ON = """
import kernels_of_a_test as kernels, numpy as np, sys
assert kernels.filled(np.zeros((2, 3)), 1) is None and "numba" not in sys.modules
for _ in range(3):  # an array to return, whose type is unpickled
    found = kernels.doubled(np.arange(3))
    assert found.tolist() == [0, 2, 4] and type(found) is np.ndarray and "numba" not in sys.modules
try:
    kernels.summed(np.arange(5), (np.arange(3, 5), np.arange(4.0, 6.0)), kernels.Place(0, 0.5), -1, True)
except ValueError as error:
    assert error.args == ("negative",) and "numba" not in sys.modules
import numba
assert kernels.doubled(np.arange(3)).tolist() == [0, 2, 4]
assert kernels.doubled(np.arange(3.0)).tolist() == [0, 2, 4]  # compiled now
assert numba.njit(lambda n: n + 1)(2) == 3
assert kernels.filled(np.zeros((2, 3), "i2"), 1) is None
assert kernels.summed(np.arange(5), (np.arange(3, 5),) * 2, kernels.Place(0, 0.5), 2, True) == 13
"""

MEASURED = """
import kernels_of_a_test as kernels, sys, tracemalloc
assert kernels.temporary(3) == 3 and "numba" not in sys.modules
tracemalloc.start()
assert kernels.temporary(100_000) == 100_000 and tracemalloc.get_traced_memory()[1] > 800_000
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with kernels that are in Numba's cache."""
    found = tmp_path_factory.mktemp("ready")
    (found / "kernels_of_a_test.py").write_text(KERNEL, encoding="utf-8")
    assert run(found, RUN) == f"{RESULTS} False True"
    run(found, "import kernels_of_a_test as kernels, numpy as np; kernels.doubled(np.arange(3))")
    run(found, "import kernels_of_a_test as kernels; kernels.temporary(3)")
    return found


@pytest.mark.slow
@pytest.mark.skipif(not numba_here.known_numba(), reason="another Numba")
@pytest.mark.skipif(sys.platform != "linux", reason="machine code of another form")
def test_what_is_cached_needs_no_numba_until_it_is_called_often(folder: Path) -> None:
    assert run(folder, RUN) == f"{RESULTS} False False"
    assert run(folder, CALLED_OFTEN) == "[3] True"
    run(folder, GOES_ON)
    run(folder, MEASURED)


@pytest.mark.slow
def test_what_is_not_as_it_was_is_left_to_numba(folder: Path) -> None:
    assert run(folder, RUN, "numba") == f"{RESULTS} True True"
    quiet = RUN.replace("summed(fixed, -1)", "raise ValueError('negative')")
    assert run(folder, quiet, NUMBA_OPT="2") == f"{RESULTS} False True"
    source = folder / "kernels_of_a_test.py"
    source.write_text(KERNEL.replace("* scale", "* scale * 2"), encoding="utf-8")
    assert run(folder, quiet).startswith("[23.5,")


def test_symbols_of_what_is_no_object_file_are_not_read() -> None:
    with pytest.raises(UnknownError):
        object_file.undefined(b"MZ" + bytes(100))


def run(folder: Path, program: str, *arguments: str, **settings: str) -> str:
    """Run a program in a process of its own; return what it prints."""
    places = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, *arguments],
        env=os.environ | places | settings,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
