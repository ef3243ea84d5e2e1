"""Bytewax by a clock of its CPU time: ``.peers/bytewax/bin/python -m benchmarks.peers.bytewax_lone ROWS RATE``."""

from __future__ import annotations

import sys

from benchmarks.peers.bytewax_paced import answers
from benchmarks.peers.lone_pace import LonePace

if __name__ == "__main__":
    pace = LonePace(int(sys.argv[1]), float(sys.argv[2]))
    answers(pace, pace.ports, pace.send)
    print(pace.figures("key"))
