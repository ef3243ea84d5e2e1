"""All knobs drawn at random, seed by seed: laws, the matrix, random graphs and simulated worlds have to hold.

    FROM=0 python -m tests.simulation.knobs SEEDS

Blocks, pages, tables, batches and read sizes are drawn for a process each (``oop_engine/system/knobs.py``), so that
work is cut where no test would cut it; after the manner of FoundationDB's "buggify".  A seed that breaks something is
printed with the command that does it again, and the run ends with 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from oop_engine.system.knobs import VARIABLE

ROOT = Path(__file__).parents[2]
WORLDS = 50  # of a seed
SECONDS = 3600
TESTS = (
    "tests/laws/test_contract.py",
    "tests/laws/test_matrix.py",
    "tests/laws/test_random_graphs.py",
    "tests/laws/test_random_versions.py",
)


def commands(seed: int) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yield the commands of a seed, each with the variables of its environment; kernels are as in production."""
    drawn = {VARIABLE: f"seed:{seed},kernels="}
    yield drawn, ["pytest", "-q", "-x", *TESTS]
    yield drawn | {"FROM": str(seed * WORLDS)}, ["tests.simulation", str(WORLDS)]


def broken(seed: int) -> list[str]:
    """Return the commands of a seed that fail, as one would write them, with the end of what they print."""
    found = []
    for variables, command in commands(seed):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=ROOT, env=os.environ | variables, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            given = " ".join(f"{name}={value}" for name, value in variables.items())
            found.append(f"{given} python -m {' '.join(command)}\n{(done.stdout + done.stderr)[-3000:]}")
    return found


def main(seeds: int, first: int) -> int:
    """Try seeds from the first one on; return the exit code."""
    wrong = 0
    for seed in range(first, first + seeds):
        found = broken(seed)
        wrong += bool(found)
        print(f"seed {seed}: {'broken' if found else 'holds'}", *found, sep="\n", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(os.environ.get("FROM", "0"))))
