"""Workloads: the NumPy reference is what brute force says, and the floor and the engine are right."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median

import numpy as np
import pytest

from benchmarks.compared import equal
from benchmarks.data import SECOND
from benchmarks.ours import contender
from benchmarks.workloads import WORKLOADS

MINUTE = 60 * SECOND
FEW = [name for name in WORKLOADS if name not in ("W5-1000", "W5-10000")]  # windows: brute force takes long
TINY, SMALL = 300, 3_000


def sliding(columns, length, slide, value, by=None):
    """Put each tuple into each of its windows, one by one."""
    found = defaultdict(int)
    for row, time in enumerate(columns["ts"].tolist()):
        key = () if by is None else (int(columns[by][row]),)
        start = time // slide * slide
        while start > time - length:
            found[(start, *key)] += value(row)
            start -= slide
    return found


def one(row):
    return 1


def brute_w1(workload, columns):
    return sliding(columns, 5 * MINUTE, MINUTE, one)


def brute_w2(workload, columns):
    return sliding(columns, 10 * SECOND, SECOND, lambda row: int(columns["len"][row]), by="src")


def brute_w3(workload, columns):
    return sliding(columns, SECOND, SECOND, one, by="src")


def brute_w4(workload, columns):
    rows = list(zip(*(columns[name].tolist() for name in ("ts", "flow", "side")), strict=True))
    found = defaultdict(int)
    for left, flow, side in rows:
        near = (
            1
            for there, its, other in rows
            if other == 1 and its == flow and abs(there - left) <= workload.band
        )
        matches = sum(near) if side == 0 else 0
        if workload.how == "left" and side == 0:
            matches = max(matches, 1)
        if matches:
            found[(left // MINUTE * MINUTE,)] += matches
    return found


def brute_w5(workload, columns):
    found = {}
    for length in range(1, 21):
        of_length = sliding(columns, length * SECOND, length * SECOND, lambda row: int(columns["v"][row]))
        found |= {(length, start): total for (start,), total in of_length.items()}
    return found


def brute_w5_many(workload, columns):
    found = {}
    for which, length in enumerate(workload.lengths.tolist()):
        for (start,), total in sliding(columns, length, length, lambda row: int(columns["v"][row])).items():
            found[(which, start)] = total
    return found


def brute_w7(workload, columns):
    found = {}
    for gap in (1, 5):
        for user in set(columns["user"].tolist()):
            times = sorted(columns["ts"][columns["user"] == user].tolist())
            session = [times[0]]
            for time in [*times[1:], None]:
                if time is None or time - session[-1] > gap * SECOND:
                    found[gap, user, session[0], session[-1] + gap * SECOND] = len(session)
                    session = []
                session.append(time)
    return found


def brute_w8(workload, columns):
    rows = sorted(range(columns["ts"].size), key=lambda row: columns["ts"][row])
    given, found, end = columns["v"][rows].tolist(), {}, 100
    while end - 1000 < len(given):
        found[(end,)] = min(given[max(end - 1000, 0) : end])
        end += 100
    return found


def brute_w9(workload, columns):
    windows = defaultdict(list)
    for server, ts, took in zip(*(columns[name].tolist() for name in ("server", "ts", "took")), strict=True):
        windows[server, ts // (10 * SECOND) * 10 * SECOND].append(took)
    if workload.share == 0.5:
        return {window: median(values) for window, values in windows.items()}
    return {window: sorted(values)[int((len(values) - 1) * 0.99)] for window, values in windows.items()}


def brute_w6(workload, columns):
    given, found = columns[workload.column].tolist(), {}
    end = workload.slide
    while end - 1024 < len(given):
        some = given[max(end - 1024, 0) : end]
        found[(end,)] = min(some) if workload.kind == "min" else sum(some) / len(some)
        end += workload.slide
    return found


def bids_of(columns):
    names = ("ts", "kind", "auction", "bidder", "price")
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    return [row for row in rows if row[1] == 2]


def brute_q5(workload, columns):
    windows = defaultdict(Counter)
    for ts, _, auction, _, _ in bids_of(columns):
        for start in range(ts // (2 * SECOND) * 2 * SECOND, ts - 10 * SECOND, -2 * SECOND):
            windows[start][auction] += 1
    most = {start: max((bids, auction) for auction, bids in of.items()) for start, of in windows.items()}
    return {(start, auction): bids for start, (bids, auction) in most.items()}


def brute_q7(workload, columns):
    windows = defaultdict(list)
    for ts, _, auction, _, price in bids_of(columns):
        windows[ts // (10 * SECOND) * 10 * SECOND].append((price, auction))
    return {(start, max(of)[1]): max(of)[0] for start, of in windows.items()}


def brute_q11(workload, columns):
    found, times = {}, defaultdict(list)
    for ts, _, _, bidder, _ in bids_of(columns):
        times[bidder].append(ts)
    for bidder, some in times.items():
        session = []
        for time in [*sorted(some), None]:
            if session and (time is None or time - session[-1] > 10 * SECOND):
                found[bidder, session[0], session[-1] + 10 * SECOND] = len(session)
                session = []
            session.append(time)
    return found


BRUTE = {
    "Q5": brute_q5,
    "Q7": brute_q7,
    "Q1": brute_q11,
    "W9": brute_w9,
    "W7": brute_w7,
    "W8": brute_w8,
    "W1": brute_w1,
    "W2": brute_w2,
    "W3": brute_w3,
    "W4": brute_w4,
    "W5": brute_w5,
    "W6": brute_w6,
}


@pytest.mark.parametrize("name", FEW)
def test_reference_is_what_brute_force_says(name):
    workload = WORKLOADS[name]
    columns = workload.data(TINY)
    found = workload.reference(columns)
    rows = zip(*(found[key].tolist() for key in workload.keys), strict=True)
    [value] = found.keys() - set(workload.keys)
    wanted = (brute_w5_many if name.startswith("W5-") else BRUTE[name[:2]])(workload, columns)
    assert dict(zip(rows, found[value].tolist(), strict=True)) == pytest.approx(
        wanted, rel=0.01 if name == "W9-p99" else None
    )


@pytest.mark.slow(keep=6)
@pytest.mark.parametrize(("name", "who"), [(name, who) for name in FEW for who in WORKLOADS[name].ours])
def test_contenders_of_ours_are_right(name, who):
    workload = WORKLOADS[name]
    columns = workload.data(SMALL)
    able = contender(who, name, columns)
    assert equal(able.columns(able.run(able.prepare())), workload.reference(columns), workload.keys)


def test_floors_can_run_again():
    workload = WORKLOADS["W3"]
    columns = workload.data(SMALL)
    able = contender("floor", "W3", columns)
    able.run(able.prepare())
    assert equal(able.columns(able.run(able.prepare())), workload.reference(columns), workload.keys)


@pytest.mark.parametrize(
    "found",
    [
        {"at": [2, 1], "n": [5, 4]},
        {"at": [1, 2, 2], "n": [4, 5, 5]},
        {"at": [1], "n": [4]},
        {"at": [1, 2]},
    ],
)
def test_results_that_differ_are_not_equal(found):
    wanted = {"at": np.array([1, 2]), "n": np.array([4, 6])}
    assert not equal({name: np.array(column) for name, column in found.items()}, wanted, ("at",))


def test_order_of_results_does_not_matter():
    wanted = {"at": np.array([1, 2]), "n": np.array([4, 5])}
    assert equal({"n": np.array([5, 4]), "at": np.array([2, 1])}, wanted, ("at",))
