"""Under ``NUMBA_DISABLE_JIT=1`` all kernels run in Python: the same results, for a debugger or a coverage of lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.children import MOST_S
from tests.parts.system.uncompiled import answers


@pytest.mark.slow
def test_results_are_the_same_without_a_compiler() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "error::RuntimeWarning"}
    command = [sys.executable, "-m", "tests.parts.system.uncompiled"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=MOST_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == answers()
    assert not done.stderr
