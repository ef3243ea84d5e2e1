"""The curves of the page as plain values, for its script: the same figures that ``plots`` draws without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oop_engine.lab.report.plots import (
    STATES,
    binned,
    delay_scale,
    finite,
    shown_delays,
    shown_figures,
    styles,
)
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Sweep

__all__ = ["delay_curves", "state_curves", "sweep_figures"]

_POINTS = 240
Chart = dict[str, Any]


def state_curves(runs: Sequence[Run]) -> list[Chart]:
    """Return the state of each run over its virtual time; of a long run a band, lowest, median, highest."""
    moments, banded, states, unit = binned(runs)
    drawn, charts = styles(runs), []
    for field, title in enumerate(STATES):
        series: list[Chart] = []
        for run, curve in zip(runs, states, strict=True):
            style = drawn[run.order, run.variant]
            chart: Chart = {"order": run.order, "dash": _dash(style.dash), "step": not banded}
            if banded:
                upper = len(series)
                band = {"band": [upper, upper + 1]}
                series.append(
                    {
                        **chart,
                        "label": f"{style.label}, highest",
                        "y": _values(curve[:, 2, field]),
                        "thin": True,
                    }
                )
                low = {
                    **chart,
                    "label": f"{style.label}, lowest",
                    "y": _values(curve[:, 0, field]),
                    "thin": True,
                }
                series.append({**low, "upper": upper})
                series.append(
                    {**chart, **band, "label": f"{style.label}, median", "y": _values(curve[:, 1, field])}
                )
            else:
                series.append({**chart, "label": style.label, "y": _values(curve[:, 2, field])})
        x = {"x": _values(moments), "xlabel": f"since the first arrival, {unit}", "xshort": unit}
        charts.append({"title": title, **x, "series": series, "bytes": title.startswith("bytes")})
    return charts


def delay_curves(runs: Sequence[Run]) -> list[Chart]:
    """Return the share of results that came within a delay, for each run."""
    drawn, charts = styles(runs), []
    for title, pick in shown_delays(runs):
        known = [(run, np.sort(finite(pick(run)))) for run in runs]
        known = [(run, values) for run, values in known if values.size]
        if not known:
            continue
        scale, unit = delay_scale(runs, max(abs(values[-1]) for _, values in known))
        thin = [values[np.linspace(0, values.size - 1, _POINTS).astype(int)] for _, values in known]
        xs = np.unique(np.concatenate(thin))
        xs = xs[np.unique(np.linspace(0, xs.size - 1, min(xs.size, 2 * _POINTS)).astype(int))]
        series = [
            {
                "label": drawn[run.order, run.variant].label, "order": run.order, "step": True,
                "dash": _dash(drawn[run.order, run.variant].dash),
                "y": _values(np.searchsorted(values, xs, "right") / values.size),
            }
            for run, values in known
        ]  # fmt: skip
        x = {"x": _values(xs / scale), "xlabel": f"within, {unit}", "xshort": unit}
        charts.append({"title": title, **x, "series": series, "share": True})
    return charts


def sweep_figures(runs: Sequence[Run], sweep: Sweep) -> list[Chart]:
    """Return every figure that is not zero throughout, along the swept parameter."""
    points = list(dict.fromkeys(run.parameters[sweep.parameter] for run in runs))
    words = [str(point) for point in points] if any(isinstance(p, str) for p in points) else None
    if words is None:
        points.sort()
    label = f"{sweep.parameter}{f', {sweep.unit}' if sweep.unit else ''}"
    charts: list[Chart] = []
    for title, pick in shown_figures(runs):
        series: list[Chart] = []
        for plan, style in styles(runs).items():
            by_point = {r.parameters[sweep.parameter]: pick(r) for r in runs if (r.order, r.variant) == plan}
            y = [_plain(by_point.get(point, math.nan)) for point in points]
            series.append(
                {
                    "label": style.label,
                    "order": style.order,
                    "dash": _dash(style.dash),
                    "points": True,
                    "y": y,
                }
            )
        values = [v for s in series for v in s["y"] if v is not None]
        log = bool(values) and min(values) > 0 and max(values) / min(values) > 60
        x = {
            "x": list(range(len(points))) if words else points,
            "words": words,
            "xlabel": label,
            "xshort": sweep.parameter,
        }
        charts.append({"title": title, **x, "series": series, "log": log, "bytes": "bytes" in title})
    return charts


def _values(array: NDArray[Any]) -> list[float | None]:
    return [_plain(value) for value in array.tolist()]


def _plain(value: float) -> float | None:
    """Return a number as short as it may be; none if it is not finite."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 2**53 else float(f"{value:.6g}")


def _dash(pattern: Sequence[float]) -> list[float]:
    return [3 * length for length in pattern]
