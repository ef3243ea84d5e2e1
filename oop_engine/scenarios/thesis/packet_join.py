"""Pairs of packets of one connection, in opposite directions: the price of order in a join.

Thesis Q7-2, fig. 7-6 and 7-7: a sliding join of two links, M1 and M2, then a count per minute of
M1's time.  Both links are sorted and in step; only the join's *output* has no order of its
own, for a packet matches earlier and later ones.  All plans are the same but for the join:

    OA-Join     lets results go as they are found; the count takes them in any order
    OPOB-Join   holds results back until they can leave sorted (output buffered)
    OPIB-Join   holds M1's packets back until all their partners are there (input buffered)

With n the band, an OA-Join needs the last n seconds of either link; an OPOB-Join that, and the
results of the last n seconds, which grow with n twice over (more partners a packet, and
longer); an OPIB-Join n seconds of M1 and 2 n of M2, so with a wide band half as many tuples again.
The thesis has "slightly less" there; in bytes an OA-Join takes 0.7 to 0.8 of an OPIB-Join.  The results that an
OPOB-Join holds are of a single column, for the count reads nothing but M1's time, while packets have their keys: so in
bytes it is the largest with wide bands only, and with narrow ones the smallest.

Delay is the same for all: a minute is over when both links have come n past its end; the wall time from
then to the answer differs.  The count is WID in all plans: its in-order twin buffers the pairs of a minute.

The trace is made: connections of heavy-tailed length, packets both ways after random pauses; the thesis has a real one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine import Page, Schema
from oop_engine.core.graphs.graph import Graph
from oop_engine.core.units import to_units
from oop_engine.extend import Message
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import COMPLETE_AT, Claim, Parameter, Scenario, Sweep, Timed, Values, Variant
from oop_engine.operators.aggregates import Count
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.joining.bands import Band
from oop_engine.operators.oa_join import OAJoin
from oop_engine.operators.policies.policies import Ordered
from oop_engine.operators.rewrites.in_order import in_order
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Tumbling
from oop_engine.scenarios.enough import every
from oop_engine.scenarios.thesis import SOURCE

__all__ = ["SCENARIO"]

LINKS = ("M1", "M2")
SCHEMA = Schema(
    {
        "ts": pa.timestamp("ms"),
        "src": pa.string(), "src_port": pa.int32(), "dst": pa.string(), "dst_port": pa.int32(),
        "len": pa.int32(),
    },
    progressing="ts",
)  # fmt: skip
KEYS = (("src", "dst"), ("dst", "src"), ("src_port", "dst_port"), ("dst_port", "src_port"))
MINUTE = 60_000
HOSTS = 4096
PAUSE_MS = 600  # between two packets of a connection, on average
LONGEST = 2000  # packets of a connection
ENOUGH = 100  # packets a second, from which on chance moves the tuples held by less than a fifth
NARROW = 1  # seconds of a band with which few results wait to be sorted
ByBand = dict[int, Run]


@dataclass(frozen=True)
class Packets:
    """The packets of one link, sorted by time."""

    page: Page
    connection: NDArray[np.int64]  # (packets,) its two ends as one number, the same for either direction


@lru_cache(maxsize=1)
def packets(rate: int, seconds: int, seed: int) -> tuple[Packets, Packets]:
    """Return ``rate`` packets a second of M1 (client to server) and of M2 (the answers)."""
    draw = np.random.default_rng(seed)
    connection, time, answer = _connections(2 * rate, seconds * 1000, draw)
    connections = connection.max(initial=0) + 1
    ends = {
        "client": draw.integers(0, HOSTS, connections),
        "server": np.minimum(draw.zipf(1.3, connections) - 1, HOSTS - 1),
        "client_port": draw.integers(1024, 65_536, connections),
        "server_port": draw.choice([53, 80, 443, 8080], connections),
    }
    order = np.argsort(time, kind="stable")
    connection, time, answer = connection[order], time[order], answer[order]
    length = draw.choice([40, 552, 1500], time.size)
    return (
        _link(ends, connection[~answer], time[~answer], length[~answer], ("client", "server")),
        _link(ends, connection[answer], time[answer], length[answer], ("server", "client")),
    )


def _connections(
    rate: int, duration: int, draw: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return of each packet: its connection, its time in ms, and whether it is an answer.

    Connections begin before the trace does, so that it is as busy at its start as at its end.
    """
    before = LONGEST * PAUSE_MS // 4
    wanted = rate * (duration + before) // 1000
    sizes = np.minimum(draw.pareto(1.2, wanted // 2) * 4 + 2, LONGEST).astype(np.int64)
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), wanted)]
    connection = np.repeat(np.arange(sizes.size), sizes)
    elapsed = np.cumsum(draw.exponential(PAUSE_MS, connection.size))
    first = np.cumsum(sizes) - sizes
    begin = draw.integers(-before, duration, sizes.size)
    time = (begin[connection] + elapsed - elapsed[first][connection]).astype(np.int64)
    inside = (time >= 0) & (time < duration)
    return connection[inside], time[inside], draw.random(inside.sum()) < 0.5


def _link(
    ends: dict[str, NDArray[np.int64]],
    connection: NDArray[np.int64],
    time: NDArray[np.int64],
    length: NDArray[np.int64],
    direction: tuple[str, str],
) -> Packets:
    """Return a link's packets; connections between the same ends are one."""
    addresses = pa.array([f"10.0.{host >> 8}.{host & 255}" for host in range(HOSTS)])
    of = {name: values[connection] for name, values in ends.items()}
    src, dst = direction
    columns = {
        "ts": pa.array(time, SCHEMA.type_of("ts")),
        "src": addresses.take(pa.array(of[src])), "src_port": of[f"{src}_port"],
        "dst": addresses.take(pa.array(of[dst])), "dst_port": of[f"{dst}_port"],
        "len": length,
    }  # fmt: skip
    hosts = of["client"] * HOSTS + of["server"]
    number = (hosts << 32) + (of["client_port"] << 16) + of["server_port"]
    return Packets(Page.of(SCHEMA, columns, arrival=time), number)


def feeds(values: Values) -> dict[str, list[Message]]:
    """Return the packets of the two links; they arrive when they are sent."""
    links = packets(values["rate"], values["seconds"], values["seed"])
    return {name: [link.page] for name, link in zip(LINKS, links, strict=True)}


def plan(values: Values) -> Graph:
    """Return the query."""
    band = Band(f"{values['band']} s", f"{values['band']} s")
    graph = Graph("OA-Join")
    links = [
        graph.add(
            f"{link}-progress", Punctuate(Ordered(), granularity=values["every"]), graph.source(link, SCHEMA)
        )
        for link in LINKS
    ]
    pairs = graph.add("pairs", OAJoin(KEYS, band), *links)
    graph.sink(
        "counts", graph.add("per-minute", WindowAggregate(Tumbling("1 min"), {"pairs": Count()}), pairs)
    )
    return graph


def variants(values: Values) -> list[Variant]:
    """Return the three joins; all that stands before and behind them is the same, the count is WID in all of them."""
    query = plan(values)
    return [
        Variant("OPOB-Join", "in", in_order(query, join="output", windows="reduce", sorted_sources=True)),
        Variant("OPIB-Join", "in", in_order(query, join="input", windows="reduce", sorted_sources=True)),
        Variant("OA-Join", "out", query),
    ]


def truth(values: Values) -> pa.Table:
    """Return the answer without a join: for each packet of M1, how many of M2 are in its band.

    A connection and a time make one integer; two binary searches tell the first and the
    last partner, and so how many there are.  O(packets log packets).
    """
    one, other = packets(values["rate"], values["seconds"], values["seed"])
    band = 1000 * values["band"]
    _, ranks = np.unique(np.concatenate([one.connection, other.connection]), return_inverse=True)
    step = values["seconds"] * 1000 + 2 * band + 1  # no band reaches into the next connection
    rank, of_other = ranks[: len(one.page)] * step, ranks[len(one.page) :] * step
    stored = np.sort(of_other + other.page.times)
    first = np.searchsorted(stored, rank + one.page.times - band, side="left")
    stop = np.searchsorted(stored, rank + one.page.times + band, side="right")
    some = stop > first
    last_partner = stored[np.maximum(stop - 1, 0)] - rank
    return _per_minute(
        one.page.times[some], (stop - first)[some], np.maximum(one.page.times, last_partner)[some]
    )


def _per_minute(
    time: NDArray[np.int64], partners: NDArray[np.int64], complete: NDArray[np.int64]
) -> pa.Table:
    minutes, of = np.unique(time // MINUTE, return_inverse=True)
    last = np.zeros(minutes.size, np.int64)
    np.maximum.at(last, of, complete)
    kind = SCHEMA.type_of("ts")
    return pa.table(
        {
            "window_start": pa.array(minutes * MINUTE).cast(kind),
            "window_end": pa.array((minutes + 1) * MINUTE).cast(kind),
            "pairs": np.bincount(of, weights=partners).astype(np.int64),
            COMPLETE_AT: last,
        }
    )


def claims(runs: list[Run]) -> list[Claim]:
    """Return the claims of fig. 7-6 and 7-7; wall and CPU time only over the whole sweep, for they are noisy."""
    oa, opob, opib = (_by_band(runs, name) for name in ("OA-Join", "OPOB-Join", "OPIB-Join"))
    passed = {n: run for n, run in oa.items() if _passed(run)}
    found = [
        _less_than_opob(oa, opob),
        _faster_than_the_band(oa, opob),
        _less_than_opib(oa, opib),
        Claim(
            "an OA-Join answers when both links have come the band past the end of a minute, no later than the joins "
            "that keep order",
            every(
                run.delay_p99_s <= min(opob[n].delay_p99_s, opib[n].delay_p99_s)
                and n <= run.delays_s.max(initial=0) < n + 1
                for n, run in passed.items()
            )
            if _often(oa)
            else None,
            _figures("delay_p50_s", oa, opob, opib),
        ),
    ]
    if len(oa) == 1:
        return found
    widest = max(oa)
    return [
        *found,
        _bytes(oa, opob),
        Claim(
            "with the widest band an OPIB-Join keeps less than an OPOB-Join",
            opib[widest].peak_tuples < opob[widest].peak_tuples,
            _figures("peak_tuples", opib, opob),
        ),
        *([_close(opib[NARROW], opob[NARROW])] if NARROW in opib else []),
        Timed(
            "from punctuation to answer an OA-Join takes less wall time than an OPOB-Join, which has results to let go",
            _total("latency_p50_ms", oa) < _total("latency_p50_ms", opob),
            _figures("latency_p50_ms", oa, opob, opib),
        ),
        Timed(
            "an OA-Join takes less CPU time than an OPOB-Join, which sorts its results",
            _total("cpu_s", oa) < _total("cpu_s", opob),
            _figures("cpu_s", oa, opob, opib),
        ),
    ]


def _passed(run: Run) -> bool:
    """Return whether links come the band, and a second, past the end of the first minute."""
    return bool(run.parameters["seconds"] > 61 + run.parameters["band"])


def _often(oa: ByBand) -> bool:
    """Return whether punctuation comes each second or more often: else packets wait for it, and not for their band."""
    every_ms = to_units(next(iter(oa.values())).parameters["every"], "ms", "packet_join: every")
    return every_ms <= 1000


def _less_than_opob(oa: ByBand, opob: ByBand) -> Claim:
    return Claim(
        "an OA-Join keeps less than an OPOB-Join, whatever the band",
        all(oa[n].peak_tuples < opob[n].peak_tuples for n in oa) if _often(oa) else None,
        _figures("peak_tuples", oa, opob),
    )


def _faster_than_the_band(oa: ByBand, opob: ByBand) -> Claim:
    more = {n: opob[n].peak_tuples - oa[n].peak_tuples for n in sorted(oa)}
    return Claim(
        "the difference, which is the results that wait to be sorted, grows faster than the band",
        every(more[a] / a < more[b] / b for a, b in pairwise(more)),
        {"more tuples in the OPOB-Join": more},
    )


def _bytes(oa: ByBand, opob: ByBand) -> Claim:
    ratio = {n: opob[n].peak_state_bytes / oa[n].peak_state_bytes for n in sorted(oa)}
    return Claim(
        "in bytes an OPOB-Join takes at most twice as many as an OA-Join, and the more the wider the band",
        all(a < b for a, b in pairwise(ratio.values())) and max(ratio.values()) <= 2 if _often(oa) else None,
        {"bytes": _figures("peak_state_bytes", oa, opob), "ratio": [round(one, 2) for one in ratio.values()]},
    )


def _less_than_opib(oa: ByBand, opib: ByBand) -> Claim:
    return Claim(
        "an OA-Join keeps less than an OPIB-Join, but no less than two thirds of its tuples",
        every(
            2 / 3 - 0.02 < oa[n].peak_tuples / opib[n].peak_tuples < 1
            for n, run in oa.items()
            if n < run.parameters["seconds"]  # else no join drops a packet before the end
        )
        if _often(oa)
        else None,
        {"tuples": _figures("peak_tuples", oa, opib), "bytes": _figures("peak_state_bytes", oa, opib)},
    )


def _close(opib: Run, opob: Run) -> Claim:
    return Claim(
        "with a band of a second an OPIB-Join keeps as many tuples as an OPOB-Join, to a fifth",
        abs(opib.peak_tuples / opob.peak_tuples - 1) <= 0.2 if opib.parameters["rate"] >= ENOUGH else None,
        {"OPIB-Join": opib.peak_tuples, "OPOB-Join": opob.peak_tuples},
    )


def _by_band(runs: list[Run], name: str) -> ByBand:
    return {run.parameters["band"]: run for run in runs if run.variant == name}


def _figures(figure: str, *joins: ByBand) -> dict[str, list[float]]:
    """Return a figure of the joins, by band."""
    return {f"{n} s": [round(getattr(runs[n], figure), 2) for runs in joins] for n in sorted(joins[0])}


def _total(figure: str, runs: ByBand) -> float:
    return sum(float(getattr(run, figure)) for run in runs.values())


SCENARIO = Scenario(
    name="packet_join",
    source=SOURCE,
    title="Packet pairs in opposite directions per minute, by three window joins",
    about=__doc__,
    parameters={
        "band": Parameter(5, "how far apart the packets of a pair may be, in seconds", least=1),
        "rate": Parameter(1000, "packets a second of each link (the thesis: 4000 of both)", least=10),
        "seconds": Parameter(130, "length of the trace", least=10),
        "every": Parameter("500 ms", "how often a link sends punctuation"),
        "seed": Parameter(0, "another seed, another trace", least=0),
    },
    feeds=feeds,
    variants=variants,
    truth=truth,
    keys=("window_end",),
    claims=claims,
    sweep=Sweep("band", (1, 3, 5, 7, 9), "s"),
)
