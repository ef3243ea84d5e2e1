"""The workloads by name."""

from __future__ import annotations

from benchmarks.workload import Workload
from benchmarks.workloads.nexmark import BidsBySession, HighestBid, HotItems
from benchmarks.workloads.w1 import PacketsOfFiveMinutes
from benchmarks.workloads.w2 import BytesBySender
from benchmarks.workloads.w3 import PacketsBySender, PacketsCorrected
from benchmarks.workloads.w4 import FlowsSeenTwice
from benchmarks.workloads.w5 import TwentyWindows
from benchmarks.workloads.w5_many import ManyWindows
from benchmarks.workloads.w6 import LastTuples
from benchmarks.workloads.w7 import SessionsByUser
from benchmarks.workloads.w8 import LastTuplesInTime
from benchmarks.workloads.w9 import MedianByServer, TailByServer

__all__ = ["WORKLOADS"]

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        PacketsOfFiveMinutes("W1"),
        BytesBySender("W2"),
        PacketsBySender("W3"),
        PacketsCorrected("W3-late"),
        FlowsSeenTwice("W4"),
        FlowsSeenTwice("W4-left", how="left"),
        FlowsSeenTwice("W4-wide", band_s=60, rows=200_000, flows=10, per_second=20),
        TwentyWindows("W5"),
        *(ManyWindows(f"W5-{many}", many) for many in (1, 100, 1000, 10_000)),
        *(
            LastTuples(f"W6-{kind}-{slide}", kind, slide)
            for kind in ("min", "avg")
            for slide in (1, 64, 1024)
        ),
        SessionsByUser("W7"),
        LastTuplesInTime("W8"),
        MedianByServer("W9-median"),
        TailByServer("W9-p99"),
        HotItems("Q5"),
        HighestBid("Q7"),
        BidsBySession("Q11"),
    )
}
