"""Curves as SVG: state over time, figures along the sweep, delays as distributions.

Every plot is text and lines, no pixels and no fonts; its colours are CSS variables, so that
a page can be read by day and by night.  In order is warm, out of order is blue, everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from oop_engine.compare import Run
from oop_engine.report.columns import order_word
from oop_engine.scenario import Sweep
from oop_engine.units import TIME_UNITS, to_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Style", "delays", "legend", "over_time", "styles", "sweep_curves"]

_BINS = 250
_FAR = 2**61  # moments beyond are no moments: the sentinels of "before all" and "after all"
_PAINT = {"ink": "#010101", "faint": "#020202", "grid": "#030303", "in": "#040404", "out": "#050505"}
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.2, 1.6), (6, 2, 1.2, 2))
_WIDTHS = {"in": 2.8, "out": 1.4}  # where two curves are one, both are seen
_SCALES = ((86_400.0, 3, "d"), (3600.0, 3, "h"), (60.0, 5, "min"), (1.0, 0, "s"))
_WIDTH, _HEIGHT = 12.3, 2.9  # of a figure, and of a row of its panels, in inches
_LOG_FROM = 60.0  # a ratio of largest to smallest that no linear axis can show


@dataclass(frozen=True)
class Style:
    """How the runs of one plan are drawn, in all plots of a page."""

    label: str
    order: Literal["in", "out"]
    dash: tuple[float, ...]


def styles(runs: Sequence[Run]) -> dict[tuple[str, str], Style]:
    """Return a style for each plan, by order and name: the colour tells the order, the dashes the name."""
    names = list(dict.fromkeys(run.variant for run in runs))
    found: dict[tuple[str, str], Style] = {}
    for run in runs:
        dash = _DASHES[names.index(run.variant) % len(_DASHES)]
        label = f"{order_word(run)}: {run.variant}"
        found.setdefault((run.order, run.variant), Style(label, run.order, dash))
    return found


def legend(runs: Sequence[Run]) -> str:
    """Return which line is which plan, as HTML."""
    return f'<ul class="legend">{"".join(map(_entry, styles(runs).values()))}</ul>'


def over_time(runs: Sequence[Run], name: str) -> str:
    """Return the state of each run over its virtual time: tuples, partial aggregates, bytes."""
    first, last = _extent(runs)
    series = [(run, *_series(run, first, last)) for run in runs]
    length_s = (last - first) * to_seconds(1, runs[0].unit)
    scale, unit = _time_scale(length_s) if runs[0].unit in TIME_UNITS else (1.0, runs[0].unit)
    drawn = styles(runs)
    titles = ("tuples kept", "partial aggregates kept", "bytes kept")

    def panel(axes: Axes, field: int) -> None:
        for run, moments, states in series:
            if moments.size:
                line = _line(drawn[run.order, run.variant], thinner=0.6)
                axes.step(moments / scale, states[:, field], where="post", **line)
        axes.set_title(titles[field])
        axes.set_xlabel(f"time since the first arrival, {unit}")
        _from_zero(axes, [float(states[:, field].max(initial=0)) for _, _, states in series])
        axes.yaxis.set_major_formatter(_short)

    return _plot(name, len(titles), panel)


def sweep_curves(runs: Sequence[Run], sweep: Sweep, name: str) -> str:
    """Return every figure that is not zero throughout, along the swept parameter."""
    shown = [
        (title, pick) for title, pick in _FIGURES if any(math.isfinite(v) and v for v in map(pick, runs))
    ]

    def panel(axes: Axes, number: int) -> None:
        title, pick = shown[number]
        for plan, style in styles(runs).items():
            mine = [run for run in runs if (run.order, run.variant) == plan]
            xs = [run.parameters[sweep.parameter] for run in mine]
            axes.plot(xs, [pick(run) for run in mine], marker="o", markersize=4, **_line(style))
        axes.set_title(title)
        axes.set_xlabel(f"{sweep.parameter}{f', {sweep.unit}' if sweep.unit else ''}")
        if any(isinstance(value, str) for value in sweep.values):
            axes.tick_params(axis="x", labelrotation=90, labelsize="small")  # words want room
        _scaled(axes, [v for v in map(pick, runs) if math.isfinite(v)])

    return _plot(name, len(shown), panel)


def delays(runs: Sequence[Run], name: str) -> str:
    """Return the distributions of the delays, as shares of results that came within a delay."""
    drawn = styles(runs)
    picks: tuple[tuple[str, Callable[[Run], NDArray[np.float64]]], ...] = (
        ("delay behind the end of the window", lambda run: run.delays_s),
        ("excess over a clairvoyant", lambda run: run.excess_s),
    )

    def panel(axes: Axes, number: int) -> None:
        title, pick = picks[number]
        known = [(run, np.sort(_finite(pick(run)))) for run in runs]
        scale, unit = _time_scale(max((abs(d[-1]) for _, d in known if d.size), default=1.0))
        for run, values in known:
            if values.size:
                thin = values[np.unique(np.linspace(0, values.size - 1, _BINS).astype(int))]
                shares = np.searchsorted(values, thin, "right") / values.size
                xs, ys = np.append(thin[:1], thin) / scale, np.append(0, shares)
                axes.step(xs, ys, where="post", **_line(drawn[run.order, run.variant]))
        axes.set_title(title)
        axes.set_xlabel(f"within, {unit}")
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.margins(x=0.03)

    return _plot(name, len(picks), panel)


_FIGURES: tuple[tuple[str, Callable[[Run], float]], ...] = (
    ("peak tuples kept", lambda run: run.peak_tuples),
    ("peak partial aggregates kept", lambda run: run.peak_partials),
    ("peak bytes kept", lambda run: run.peak_state_bytes),
    ("delay of a result, median, s", lambda run: run.delay_p50_s),
    ("excess delay, 99th percentile, s", lambda run: run.excess_delay_p99_s),
    ("results missing or wrong", lambda run: math.nan if run.off is None else run.off),
    ("tuples late", lambda run: run.late),
    ("CPU seconds", lambda run: run.cpu_s),
)


def _entry(style: Style) -> str:
    width = _WIDTHS[style.order]
    dashes = " ".join(f"{length * width:g}" for length in style.dash)
    line = f'<line x1="0" y1="6" x2="34" y2="6" stroke-width="{width + 0.4}" stroke-dasharray="{dashes or "none"}"/>'
    picture = f'<svg class="{style.order}" width="34" height="12" aria-hidden="true">{line}</svg>'
    return f"<li>{picture}{escape(style.label)}</li>"


def _extent(runs: Sequence[Run]) -> tuple[int, int]:
    """Return the first and the last moment at which something changed in any run."""
    known = [s.now for run in runs for s in run.series if abs(s.now) < _FAR]
    return min(known, default=0), max(known, default=0)


def _series(run: Run, first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return moments in seconds since ``first``, and states (rows, 3): the peak of each bin.

    What a run keeps at its last change, it keeps to the end.
    """
    samples = [s for s in run.series if abs(s.now) < _FAR]
    states = np.array([(s.state.tuples, s.state.partials, s.state.nbytes) for s in samples], np.int64)
    if not samples:
        return np.empty(0), states.reshape(0, 3)
    moments = (np.array([s.now for s in samples]) - first) * to_seconds(1, run.unit)
    starts = np.unique(np.linspace(0, len(samples), _BINS, endpoint=False).astype(int))
    peaks = np.maximum.reduceat(states, starts, axis=0)
    end = (last - first) * to_seconds(1, run.unit)
    return np.append(moments[starts], end), np.concatenate([peaks, states[-1:]])


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[np.isfinite(values) & (np.abs(values) < _FAR)]


def _time_scale(longest_s: float) -> tuple[float, str]:
    return next(((s, word) for s, least, word in _SCALES if longest_s >= s * least and least), (1.0, "s"))


def _line(style: Style, thinner: float = 1) -> dict[str, Any]:
    width = _WIDTHS[style.order] * thinner
    dash = (0, style.dash) if style.dash else "solid"
    return {"color": _PAINT[style.order], "linestyle": dash, "linewidth": width}


def _scaled(axes: Axes, values: Sequence[float]) -> None:
    """Use a logarithmic axis where a linear one would hide the smaller half of the truth."""
    positive = [v for v in values if v > 0]
    if len(positive) == len(values) and max(positive) / min(positive) > _LOG_FROM:
        axes.set_yscale("log")
    elif positive and max(positive) / min(positive) > _LOG_FROM:
        axes.set_yscale("symlog", linthresh=min(positive))
        axes.set_ylim(bottom=0)
    else:
        _from_zero(axes, values)
    axes.yaxis.set_major_formatter(_short)


def _from_zero(axes: Axes, values: Sequence[float]) -> None:
    low, high = min(0, *values), max(0, *values)
    axes.set_ylim(1.08 * low, 1.08 * high or 1)


def _short(value: float, _: object = None) -> str:
    """Return a figure beside an axis: ``1.5k``, ``20M``, ``0.25``."""
    for least, word in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= least:
            return f"{value / least:g}{word}"
    return f"{value:g}"


def _plot(name: str, panels: int, fill: Callable[[Axes, int], None]) -> str:
    """Make rows of panels; return them as SVG for a page."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        columns = 2 if panels == 4 else min(panels, 3)
        rows = -(-panels // columns)
        figure = Figure(figsize=(_WIDTH, _HEIGHT * rows), layout="constrained")
        for number in range(panels):
            fill(figure.add_subplot(rows, columns, number + 1), number)
        out = StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata=dict.fromkeys(_METADATA))
    return _for_page(out.getvalue(), name)


_METADATA = ("Creator", "Date", "Format", "Type")
_RC = {
    "svg.fonttype": "none",
    "svg.hashsalt": "oop-engine",
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.12,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.7,
    "grid.color": _PAINT["grid"],
    "axes.edgecolor": _PAINT["faint"],
    "axes.labelcolor": _PAINT["faint"],
    "axes.titlecolor": _PAINT["ink"],
    "xtick.color": _PAINT["faint"],
    "ytick.color": _PAINT["faint"],
    "text.color": _PAINT["ink"],
}


def _for_page(svg: str, name: str) -> str:
    """Make matplotlib's SVG part of a page: no prologue, ids of its own, colours as variables."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg).replace("url(#", f"url(#{name}-")
    for variable, paint in _PAINT.items():
        svg = svg.replace(paint, f"var(--{variable})")
    svg = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg ", '<svg class="plot" ', 1)
