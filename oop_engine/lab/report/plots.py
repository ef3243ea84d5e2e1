"""Curves as SVG: state over time, figures along the sweep, delays as distributions.

Every plot is text and lines, no pixels and no fonts; its colours are CSS variables, so that
a page can be read by day and by night.  In order is warm, out of order is blue, everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from oop_engine.core.units import TIME_UNITS, to_seconds
from oop_engine.lab.report.columns import order_word
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "STATES", "Style", "binned", "delay_scale", "delays", "finite", "legend", "over_time", "scene", "shown_delays",
    "shown_figures", "span_of", "styles", "sweep_curves", "time_scale",
]  # fmt: skip

_BINS = 400
_BANDS, _MANY = 60, 1000  # so many of a run with more samples than that
_FAR = 2**61  # moments beyond are no moments: the sentinels of "before all" and "after all"
_PAINT = {
    "ink": "#010101",
    "faint": "#020202",
    "grid": "#030303",
    "in": "#040404",
    "out": "#050505",
    "bad": "#060606",
}
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.2, 1.6), (6, 2, 1.2, 2))
_WIDTHS = {"in": 2.8, "out": 1.4}  # where two curves are one, both are seen
_SCALES = ((86_400.0, 3, "d"), (3600.0, 3, "h"), (60.0, 5, "min"), (1.0, 0, "s"))
_WIDTH, _HEIGHT = 12.3, 2.9  # of a figure, and of a row of its panels, in inches
_DOTS = 400  # in the drawing, which has no script to thin them out
_LOG_FROM = 60.0  # a ratio of largest to smallest that no linear axis can show


@dataclass(frozen=True)
class Style:
    """How the runs of one plan are drawn, in all plots of a page."""

    label: str
    order: Literal["in", "out"]
    dash: tuple[float, ...]


def styles(runs: Sequence[Run]) -> dict[tuple[str, str], Style]:
    """Return a style for each plan, by order and name: the colour is of the order, the dashes are of the name."""
    names = list(dict.fromkeys(run.variant for run in runs))
    by_plan: dict[tuple[str, str], Style] = {}
    for run in runs:
        dash = _DASHES[names.index(run.variant) % len(_DASHES)]
        order = order_word(run)
        label = order if run.variant == order else f"{order}: {run.variant}"
        by_plan.setdefault((run.order, run.variant), Style(label, run.order, dash))
    return by_plan


def legend(runs: Sequence[Run]) -> str:
    """Return which line is which plan, as HTML."""
    return f'<ul class="legend">{"".join(map(_entry, styles(runs).values()))}</ul>'


def over_time(runs: Sequence[Run], name: str) -> str:
    """Return the state of each run over its virtual time: tuples, partial aggregates, bytes; bands of a long one."""
    moments, banded, states, unit = binned(runs)
    drawn = styles(runs)

    def panel(axes: Axes, field: int) -> None:
        for run, curve in zip(runs, states, strict=True):
            style = drawn[run.order, run.variant]
            if banded:
                low, middle, high = curve[:, :, field].T
                axes.fill_between(moments, low, high, color=_PAINT[run.order], alpha=0.16, linewidth=0)
                axes.plot(moments, middle, **_line(style, thinner=0.7))
            else:
                axes.step(moments, curve[:, 2, field], where="post", **_line(style, thinner=0.6))
        axes.set_title(STATES[field])
        axes.set_xlabel(f"time since the first arrival, {unit}")
        _from_zero(axes, [float(curve[:, 2, field].max(initial=0)) for curve in states])
        axes.yaxis.set_major_formatter(_short)

    return _plot(name, len(STATES), panel)


def binned(runs: Sequence[Run]) -> tuple[NDArray[np.float64], bool, list[NDArray[np.float64]], str]:
    """Return moments, whether they stand for many, and of each run lowest, median and highest state in each.

    Moments count from the first arrival, in the unit that is returned last; states are (moments, 3, 3): which of
    the samples, and which of tuples, partial aggregates, bytes.  A sample is the most since the one before it.
    """
    first, last = span_of(runs)
    samples = [[s for s in run.series if abs(s.now) < _FAR] for run in runs]
    banded = max(map(len, samples), default=0) > _MANY
    edges = np.linspace(first, last, (_BANDS if banded else _BINS) + 1)
    curves = []
    for mine in samples:
        rows = np.array(
            [(0, 0, 0), *((s.state.tuples, s.state.partials, s.state.nbytes) for s in mine)], float
        )
        starts = np.searchsorted([s.now for s in mine], edges, "left")
        stops = np.append(starts[1:], len(mine))
        parts = [
            rows[start : stop + 1] for start, stop in zip(starts, stops, strict=True)
        ]  # and what was before
        curves.append(np.array([(p.min(axis=0), np.median(p, axis=0), p.max(axis=0)) for p in parts]))
    length_s = (last - first) * to_seconds(1, runs[0].unit)
    scale, unit = time_scale(length_s) if runs[0].unit in TIME_UNITS else (1.0, runs[0].unit)
    return (edges - first) * to_seconds(1, runs[0].unit) / scale, banded, curves, unit


def sweep_curves(runs: Sequence[Run], sweep: Sweep, name: str) -> str:
    """Return every figure that is not zero throughout, along the swept parameter."""
    shown = shown_figures(runs)

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
    drawn, shown = styles(runs), shown_delays(runs)

    def panel(axes: Axes, number: int) -> None:
        title, pick = shown[number]
        known = [(run, np.sort(finite(pick(run)))) for run in runs]
        scale, unit = delay_scale(runs, max((abs(d[-1]) for _, d in known if d.size), default=1.0))
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

    return _plot(name, len(shown), panel)


_FIRST_DELAY = "delay of a first answer, median, {unit}"
_FIGURES: tuple[tuple[str, Callable[[Run], float]], ...] = (
    ("peak tuples kept", lambda run: run.peak_tuples),
    ("peak partial aggregates kept", lambda run: run.peak_partials),
    ("peak bytes kept", lambda run: run.peak_state_bytes),
    ("delay of a result, median, {unit}", lambda run: run.delay_p50_s),
    ("excess delay, 99th percentile, {unit}", lambda run: run.excess_delay_p99_s),
    (_FIRST_DELAY, lambda run: run.first_delay_p50_s),
    ("first answers wrong", lambda run: math.nan if run.first_wrong is None else run.first_wrong),
    ("rows taken back", lambda run: run.revised),
    ("results missing or wrong", lambda run: math.nan if run.off is None else run.off),
    ("tuples late", lambda run: run.late),
    ("CPU seconds", lambda run: run.cpu_s),
)


STATES = ("tuples kept", "partial aggregates kept", "bytes kept")
_DELAYS: tuple[tuple[str, Callable[[Run], NDArray[np.float64]]], ...] = (
    ("delay behind the end of the window", lambda run: run.delays_s),
    ("excess over a clairvoyant", lambda run: run.excess_s),
)
_FIRST_DELAYS: tuple[tuple[str, Callable[[Run], NDArray[np.float64]]], ...] = (
    ("delay of first answers", lambda run: run.first_delays_s),
)


def scene(play: dict[str, Any], name: str) -> str:
    """Return the stretch of a play as it was at its end: tuples, bounds and answers."""
    scale, unit = (
        time_scale((play["last"] - play["first"]) * play["scale"]) if play["time"] else (1.0, play["unit"])
    )
    factor = play["scale"] / scale if play["time"] else 1.0

    def panel(axes: Axes, _: int) -> None:
        dots = play["dots"]
        every = max(1, len(dots["x"]) // _DOTS)
        x, y = (np.array(dots[side][::every]) * factor for side in ("x", "y"))
        axes.plot(x, y, ".", color=_PAINT["faint"], markersize=2.5, alpha=0.6)
        for i in play["shown"]:
            plan = play["plans"][i]
            paint = _PAINT[plan["order"]]
            line = {side: np.array(plan["linear"][side]) * factor for side in ("x", "y")}
            width, dash = _WIDTHS[plan["order"]], (0, plan["dash"]) if plan["dash"] else "solid"
            axes.step(line["x"], line["y"], where="post", color=paint, linewidth=width, linestyle=dash)
            step = max(1, len(plan["answers"]["x"]) // _DOTS)
            at = [np.array(plan["answers"][side][::step]) * factor for side in ("x", "y")]
            axes.plot(*at, "o", color=paint, markersize=3.2, fillstyle="none", markeredgewidth=0.7)
            late = [np.array(plan["late"][side]) * factor for side in ("x", "y")]
            axes.plot(*late, "x", color=_PAINT["bad"], markersize=5)
        axes.set_xlabel(f"when it came, {unit}")
        axes.set_ylabel(f"when it is from, {unit}")

    return _plot(name, 1, panel, height=4.6)


def _entry(style: Style) -> str:
    width = _WIDTHS[style.order]
    dashes = " ".join(f"{length * width:g}" for length in style.dash)
    line = f'<line x1="0" y1="6" x2="34" y2="6" stroke-width="{width + 0.4}" stroke-dasharray="{dashes or "none"}"/>'
    picture = f'<svg class="{style.order}" width="34" height="12" aria-hidden="true">{line}</svg>'
    return f"<li>{picture}{escape(style.label)}</li>"


def shown_figures(runs: Sequence[Run]) -> list[tuple[str, Callable[[Run], float]]]:
    """Return the figures that are not zero, or unknown, throughout; of first answers where some are corrected."""
    hidden = [] if any(run.revised for run in runs) else [_FIRST_DELAY, "first answers wrong"]
    return [
        (title.format(unit=_delay_unit(runs)), pick)
        for title, pick in _FIGURES
        if title not in hidden and any(math.isfinite(v) and v for v in map(pick, runs))
    ]


def shown_delays(runs: Sequence[Run]) -> list[tuple[str, Callable[[Run], NDArray[np.float64]]]]:
    """Return the delays that have a distribution of their own: those of first answers where some are corrected."""
    return [*_DELAYS, *_FIRST_DELAYS] if any(run.revised for run in runs) else [*_DELAYS]


def span_of(runs: Sequence[Run]) -> tuple[int, int]:
    """Return the first and the last moment at which something changed in any run."""
    known = [s.now for run in runs for s in run.series if abs(s.now) < _FAR]
    known += [int(run.emitted[i]) for run in runs if known and run.emitted.size for i in (0, -1)]
    known = [moment for moment in known if abs(moment) < _FAR]
    return min(known, default=0), max(known, default=0)


def finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values that are numbers, and no sentinels."""
    return values[np.isfinite(values) & (np.abs(values) < _FAR)]


def time_scale(longest_s: float) -> tuple[float, str]:
    """Return the seconds of a fitting unit of time, and its name."""
    return next(((s, word) for s, limit, word in _SCALES if longest_s >= s * limit and limit), (1.0, "s"))


def delay_scale(runs: Sequence[Run], longest: float) -> tuple[float, str]:
    """Return by how much delays are divided in a picture, and the unit that they then have: of rows these."""
    unit = _delay_unit(runs)
    return time_scale(longest) if unit == "s" else (1.0, unit)


def _delay_unit(runs: Sequence[Run]) -> str:
    return "s" if not runs or runs[0].unit in TIME_UNITS else runs[0].unit


def _line(style: Style, thinner: float = 1) -> dict[str, Any]:
    width = _WIDTHS[style.order] * thinner
    dash = (0, style.dash) if style.dash else "solid"
    return {"color": _PAINT[style.order], "linestyle": dash, "linewidth": width}


def _scaled(axes: Axes, values: Sequence[float]) -> None:
    """Use a logarithmic axis where a linear one would hide the smaller half of the truth."""
    positive, format_ = [v for v in values if v > 0], _short
    if len(positive) == len(values) and max(positive) / min(positive) > _LOG_FROM:
        axes.set_yscale("log")
    elif positive and max(positive) / min(positive) > _LOG_FROM:
        axes.set_yscale("symlog", linthresh=min(positive))
        axes.set_ylim(bottom=min(0, *values))
        format_ = partial(_short_from, min(positive))
    else:
        _from_zero(axes, values)
    axes.yaxis.set_major_formatter(format_)


def _short_from(limit: float, value: float, _: object = None) -> str:
    """Return a figure beside an axis, none where it would stand on that of zero."""
    return "" if 0 < abs(value) < limit else _short(value)


def _from_zero(axes: Axes, values: Sequence[float]) -> None:
    low, high = min(0, *values), max(0, *values)
    axes.set_ylim(1.08 * low, 1.08 * high or 1)


def _short(value: float, _: object = None) -> str:
    """Return a figure beside an axis: ``1.5k``, ``20M``, ``0.25``."""
    for limit, word in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:g}{word}"
    return f"{value:g}"


def _plot(name: str, panels: int, fill: Callable[[Axes, int], None], height: float = _HEIGHT) -> str:
    """Make rows of panels; return them as SVG for a page."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        columns = 2 if panels == 4 else min(panels, 3)
        rows = -(-panels // columns)
        figure = Figure(figsize=(_WIDTH, height * rows), layout="constrained")
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
