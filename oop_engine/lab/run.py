"""Run: the figures of one plan over one trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from oop_engine.core.graphs.statistics import Sample
from oop_engine.lab.recording import Recording

__all__ = ["HeldTo", "Run", "Values"]

Values = dict[str, Any]
"""Parameters of a scenario, by name."""
HeldTo = Literal["truth", "brute force", "first plan", "nothing"]
"""Where the answer that results are compared with is from."""

_JSON_KEYS = (
    "order", "variant", "parameters", "tuples", "results", "missing", "wrong", "late", "peak_tuples",
    "peak_partials", "peak_state_bytes", "delay_p50_s", "delay_p99_s", "excess_delay_p50_s",
    "excess_delay_p99_s", "delays_of", "excess_delays_of", "latency_p50_ms", "latency_p99_ms", "cpu_s",
    "tuples_per_s", "held_to",
    "first_delay_p50_s", "first_delay_p99_s", "first_wrong", "revised",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One plan over one trace.

    Delays are in virtual time, in seconds: emission minus window end, below 0 for a result that punctuation released
    before that, and (excess) emission minus the arrival of the result's last tuple, when a clairvoyant would emit it.
    They are of right results: missing and wrong ones are counted apart, and those that the end of the trace flushed
    before their window's end are left out.  ``delays_of`` and ``excess_delays_of`` count them.
    ``all_delays_s`` are those of wrong results too, for plans that trade errors for them.
    Latency is wall time from when a punctuation leaves ``Punctuate`` to the result it releases.
    ``late`` counts tuples behind a bound; state peaks are over the whole graph.

    The results were compared with ``truth``, and ``held_to`` is its origin: the ``"truth"`` of the
    scenario, the answer by ``"brute force"``, without either the answer of the ``"first plan"``, which
    itself is compared with ``"nothing"``.  Figures that were not checked are None (``missing``, ``wrong``) or
    NaN (excess delay); so is a delay or latency of no results.

    Of a revision stream results are the net rows, and their delay is that of the final answer: until punctuation has
    passed them at the sink.  ``first`` has the first answers, ``first_delays_s`` their delays, below 0 where they came
    before the end of the window; ``first_wrong`` of them were not right, and ``revised`` rows were retracted.  Of a
    plain stream the first answer is the final one.

    ``progressing`` is the attribute of the results, ``emitted`` int64 (results,) when each came, or was final;
    ``recording`` has the moments of its events, for the runs of one point of the sweep.
    """

    order: Literal["in", "out"]
    variant: str
    exact: bool
    parameters: Values
    tuples: int
    results: int
    missing: int | None
    wrong: int | None
    late: int
    peak_tuples: int
    peak_partials: int
    peak_groups: int
    peak_state_bytes: int
    delay_p50_s: float
    delay_p99_s: float
    excess_delay_p50_s: float
    excess_delay_p99_s: float
    latency_p50_ms: float
    latency_p99_ms: float
    cpu_s: float
    tuples_per_s: float
    table: pa.Table = field(repr=False)
    truth: pa.Table = field(repr=False)
    delays_s: NDArray[np.float64] = field(repr=False)
    excess_s: NDArray[np.float64] = field(repr=False)
    series: list[Sample] = field(repr=False)
    unit: str = "s"
    held_to: HeldTo = "truth"
    why: str = ""
    progressing: str = ""
    emitted: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)
    recording: Recording | None = field(default=None, repr=False)
    first_delay_p50_s: float = float("nan")
    first_delay_p99_s: float = float("nan")
    first_wrong: int | None = None
    revised: int = 0
    first: pa.Table | None = field(default=None, repr=False)
    first_delays_s: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)
    all_delays_s: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {name: getattr(self, name) for name in _JSON_KEYS}

    @property
    def delays_of(self) -> int:
        """How many results the quantiles of the delay are of."""
        return self.delays_s.size

    @property
    def excess_delays_of(self) -> int:
        """How many results the quantiles of the excess delay are of."""
        return self.excess_s.size

    @property
    def checked(self) -> bool:
        """Whether the results were held to the true answer."""
        return self.held_to in ("truth", "brute force")

    @property
    def off(self) -> int | None:
        """How many results are missing or wrong; None: not checked."""
        return None if self.missing is None or self.wrong is None else self.missing + self.wrong
