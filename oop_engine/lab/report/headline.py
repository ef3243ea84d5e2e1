"""The result of a comparison, in a sentence or two with figures: for better or for worse."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oop_engine.lab.comparison import Comparison
from oop_engine.lab.report.columns import order_word, shown_runs, span
from oop_engine.lab.report.words import count, ratio, size, text
from oop_engine.lab.run import Run

__all__ = ["agreement", "best", "headline", "headline_runs"]

_FEWER = 1.05  # a ratio nearer to one than this is no difference worth a sentence


def headline(comparison: Comparison) -> str:
    """Return the result in two or three sentences, with figures."""
    runs = shown_runs(comparison)
    pair = headline_runs(runs)
    if pair is None:
        return _alone(comparison, runs) if runs else "There is no plan, so nothing was run."
    text = f"{_where(comparison, pair[1])}{_kept(*pair)}, and {_answered(*pair)}. {agreement(pair)}"
    return f"{_late(pair)}{text[0].upper()}{text[1:]}{_chosen(pair) if len(runs) > len(pair) else ''}"


def _alone(comparison: Comparison, runs: Sequence[Run]) -> str:
    """Return the result of the best plan, where there is one order."""
    run = best(runs)
    peak = f"{order_word(run)} keeps {size(run.peak_state_bytes)} at its peak"
    answered = _no_delay([run]) or f"its median answer comes {_behind(run)}"
    text = f"{_where(comparison, run)}{peak}, and {answered}. {agreement([run])}"
    other = "out of order" if run.order == "in" else "in order"
    return f"{_late([run])}{text[0].upper()}{text[1:]} No plan {other} was run to set it against."


def _late(runs: Sequence[Run]) -> str:
    """Return the reason for results that are not those of all tuples, where tuples were late."""
    run = max(runs, key=lambda run: run.late)
    if not run.late:
        return ""
    share = f"{count(run.late)} of {count(run.tuples)} tuples were late ({100 * run.late / run.tuples:.2g} %)"
    if not any(other.off for other in runs):
        return f"{share}. "
    off = max(other.off or 0 for other in runs)
    differ = f"{count(off)} result{'s' * (off != 1)} differ{'s' * (off == 1)}"
    return f"{share}: without them {differ} from those of all tuples. "


def best(runs: Sequence[Run]) -> Run:
    """Return the run of the best plan: it is exact, then answers first, then keeps least."""
    return min(runs, key=_rank)


def headline_runs(runs: Sequence[Run]) -> tuple[Run, Run] | None:
    """Return the best run in order and the best out of order.

    The best one is exact, then answers first, then keeps least.
    """
    ranked = sorted(runs, key=_rank)
    best = {run.order: run for run in reversed(ranked)}
    return (best["in"], best["out"]) if len(best) == 2 else None


def _rank(run: Run) -> tuple[float, ...]:
    """Return a key that is least for the best plan; a delay of no results is the longest."""
    delays = (run.delay_p50_s, run.delay_p99_s)
    return (not run.exact, *(math.inf if math.isnan(d) else d for d in delays), run.peak_state_bytes)


def agreement(runs: Sequence[Run]) -> str:
    """Return in a sentence how the results of ``runs`` stand to the true answer."""
    off = [
        f"{order_word(run)}: {count(run.missing or 0)} missing, {count(run.wrong or 0)} wrong"
        for run in runs
        if run.off
    ]
    results, last = f"{count(runs[-1].results)} results", runs[-1]
    if not all(run.checked for run in runs):
        text = (
            "the answers differ"
            if off
            else "the answers are equal"
            if len(runs) > 1
            else f"there are {results}"
        )
        return f"Whether they are right was not checked ({last.why}); {text}."
    if off:
        return f"Not all results are the brute-force answer's ({'; '.join(off)})."
    return f"{'Both give' if len(runs) > 1 else 'It gives'} the brute-force answer, all {results} of it."


def _kept(ordered: Run, free: Run) -> str:
    ordered_bytes, free_bytes = ordered.peak_state_bytes, free.peak_state_bytes
    figures = f"{size(free_bytes)} at its peak against {size(ordered_bytes)}"
    if not ordered_bytes or not free_bytes or 1 / _FEWER < ordered_bytes / free_bytes < _FEWER:
        return f"out of order keeps about as much state as in order ({figures})"
    more, factor = (
        (free_bytes > ordered_bytes),
        ratio(max(ordered_bytes, free_bytes), min(ordered_bytes, free_bytes)),
    )
    return f"out of order keeps {factor} times {'more' if more else 'less'} state than in order ({figures})"


def _answered(ordered: Run, free: Run) -> str:
    if nothing := _no_delay((ordered, free)):
        return f"{nothing}, so delays cannot be compared"
    gain = ordered.delay_p50_s - free.delay_p50_s
    if abs(gain) < 1e-3 * max(abs(ordered.delay_p50_s), abs(free.delay_p50_s), 1e-9):
        return f"its median answer comes at the same time ({_behind(free)})"
    word = "earlier" if gain > 0 else "later"
    figures = f"{_behind(free)}, not {span(ordered, ordered.delay_p50_s)}"
    return f"its median answer comes {span(free, abs(gain))} {word} ({figures})"


def _no_delay(runs: Sequence[Run]) -> str:
    """Return which runs have no answer whose delay counts; "": all have some."""
    without = [run for run in runs if math.isnan(run.delay_p50_s)]
    if not without:
        return ""
    right = "right " if any(run.all_delays_s.size for run in without) else ""
    return f"{' and '.join(map(order_word, without))} gave no {right}answer before the end of the trace"


def _behind(run: Run) -> str:
    if run.delay_p50_s < 0:
        return f"{span(run, -run.delay_p50_s)} ahead of the window's end"
    return f"{span(run, run.delay_p50_s)} behind the window"


def _where(comparison: Comparison, run: Run) -> str:
    sweep = comparison.scenario.sweep
    if sweep is None:
        return ""
    return f"With {sweep.parameter} {text(run.parameters[sweep.parameter])} {sweep.unit}".rstrip() + ", "


def _chosen(pair: tuple[Run, Run]) -> str:
    ordered, free = pair
    return f" (The best plan of each order: in order “{ordered.variant}”, out of order “{free.variant}”.)"
