"""``python -m tests.simulation 1000``: so many seeds, from ``FROM`` (0) on; the first that breaks a law is printed."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from time import perf_counter

from tests.simulation.laws import simulate


def main() -> int:
    seeds, first = int(sys.argv[1]), int(os.environ.get("FROM", "0"))
    logging.disable(logging.WARNING)
    began = perf_counter()
    for seed in range(first, first + seeds):
        try:
            simulate(seed)
        except BaseException:
            traceback.print_exc()
            print(f"seed {seed} breaks a law: FROM={seed} make simulate SEEDS=1", file=sys.stderr)
            return 1
    print(f"{seeds:,} seeds from {first}: all laws hold ({perf_counter() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
