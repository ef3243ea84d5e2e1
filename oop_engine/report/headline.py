"""What a comparison comes to, in a sentence or two with figures: for better or for worse."""

from __future__ import annotations

from collections.abc import Sequence

from oop_engine.compare import Comparison, Run
from oop_engine.report.columns import order_word, shown_runs, span
from oop_engine.report.words import count, ratio, size, text

__all__ = ["all_exact", "headline", "headline_runs"]

_FEWER = 1.05  # a ratio nearer to one than this is no difference worth a sentence


def headline(comparison: Comparison) -> str:
    """Return in two or three sentences, with figures, what came out."""
    runs = shown_runs(comparison)
    pair = headline_runs(runs)
    if pair is None:
        return "Only one of the two orders was run; there is nothing to set it against."
    said = f"{_where(comparison, pair[1])}{_kept(*pair)}, and {_answered(*pair)}. {_agreed(pair)}"
    return f"{said[0].upper()}{said[1:]}{_chosen(pair) if len(runs) > len(pair) else ''}"


def headline_runs(runs: Sequence[Run]) -> tuple[Run, Run] | None:
    """Return the best run in order and the best out of order.

    The best one is exact, then answers first, then keeps least.
    """
    ranked = sorted(
        runs, key=lambda run: (not run.exact, run.delay_p50_s, run.delay_p99_s, run.peak_state_bytes)
    )
    best = {run.order: run for run in reversed(ranked)}
    return (best["in"], best["out"]) if len(best) == 2 else None


def all_exact(runs: Sequence[Run]) -> bool:
    """Tell whether nothing is missing and nothing is wrong."""
    return not any(run.missing or run.wrong for run in runs)


def _kept(ordered: Run, free: Run) -> str:
    one, other = ordered.peak_state_bytes, free.peak_state_bytes
    figures = f"{size(other)} at its peak against {size(one)}"
    if not one or not other or 1 / _FEWER < one / other < _FEWER:
        return f"out of order keeps about as much state as in order ({figures})"
    more, factor = (other > one), ratio(max(one, other), min(one, other))
    return f"out of order keeps {factor} times {'more' if more else 'less'} state than in order ({figures})"


def _answered(ordered: Run, free: Run) -> str:
    gain = ordered.delay_p50_s - free.delay_p50_s
    if abs(gain) < 1e-3 * max(abs(ordered.delay_p50_s), abs(free.delay_p50_s), 1e-9):
        return f"its median answer comes at the same time ({_behind(free)})"
    word = "earlier" if gain > 0 else "later"
    figures = f"{_behind(free)}, not {span(ordered, ordered.delay_p50_s)}"
    return f"its median answer comes {span(free, abs(gain))} {word} ({figures})"


def _behind(run: Run) -> str:
    if run.delay_p50_s < 0:
        return f"{span(run, -run.delay_p50_s)} ahead of the window's end"
    return f"{span(run, run.delay_p50_s)} behind the window"


def _agreed(pair: tuple[Run, Run]) -> str:
    if all_exact(pair):
        return f"Both give the brute-force answer, all {count(pair[1].results)} results of it."
    off = [f"{order_word(run)}: {count(run.missing)} missing, {count(run.wrong)} wrong" for run in pair]
    return f"Not all results are the brute-force answer's ({'; '.join(off)})."


def _where(comparison: Comparison, run: Run) -> str:
    sweep = comparison.scenario.sweep
    if sweep is None:
        return ""
    return f"With {sweep.parameter} {text(run.parameters[sweep.parameter])} {sweep.unit}".rstrip() + ", "


def _chosen(pair: tuple[Run, Run]) -> str:
    ordered, free = pair
    return f" (The best plan of each order: in order “{ordered.variant}”, out of order “{free.variant}”.)"
