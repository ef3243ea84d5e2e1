from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from tests.children import MOST_S

FAULTS = """
import resource
import numpy as np
from oop_engine.system.memory import keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        some = [np.zeros(2**18, np.uint8) for _ in range(16)]
        for array in some:
            array += 1
        del some, array
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
keep_freed()
faults()
print(given_back, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is not glibc's")
def test_memory_that_was_freed_is_not_asked_of_the_system_again() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, timeout=MOST_S
    )
    given_back, kept = map(int, ran.stdout.split())
    assert given_back > 10 * kept, (given_back, kept)
