"""The page of a comparison: one HTML file that opens from disk and needs nothing else."""

from __future__ import annotations

import inspect
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any

from oop_engine.lab.equal_values import CLOSE
from oop_engine.lab.comparison import Comparison
from oop_engine.lab.origin import versions
from oop_engine.lab.report import plots
from oop_engine.lab.report.columns import EXCESS, Figure, columns, order_word, shown_runs, span
from oop_engine.lab.report.curves import delay_curves, state_curves, sweep_figures
from oop_engine.lab.report.drawing import draw
from oop_engine.lab.report.headline import best, headline, headline_runs
from oop_engine.lab.report.opponent import FAIR, buffers
from oop_engine.lab.report.play import Play, played
from oop_engine.lab.report.words import count, label, plain, size, text
from oop_engine.lab.run import Run
from oop_engine.lab.scenario import Claim

__all__ = ["page"]

UPLOT = "1.6.32"
"""The version of the library of curves that a page carries."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_PLAYED = (
    "A dot is a tuple: its arrival, against its event time; one on the dotted line came at once. The line of a plan is "
    "its bound: no tuple comes below it any more, so it closes the windows whose ends it passes. A ring "
    "is an answer as it leaves, at the end of its window; a cross a tuple that came behind the bound. "
)
_LESS = "\\u003c"
_WORDS = ("plan",)
_MARKS = {"holds": ("✓", "good"), "fails": ("✗", "bad"), "not checked": ("?", "unknown")}
_WIDEST = 14  # columns of a table of figures


def page(comparison: Comparison) -> str:
    """Return the report as HTML: the answer, the play-by-play, curves, claims, all runs, and the plans.

    Nothing is loaded from anywhere.  Without a script all of it can be read; with one, curves can be pointed at
    and zoomed, the table sorted, and the play played.  The size is bounded by the number of runs, not by that
    of results or tuples.
    """
    title = f"{comparison.scenario.title}: comparison by oop-engine"
    play = played(shown_runs(comparison))
    picture = partial(_play, play=play)
    sections = (_head, _tiles, picture, _state, _sweep, _delays, _claims, _runs, _about, _plans, _foot)
    body = "\n".join(text for section in sections if (text := section(comparison)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_file('vendor/uPlot.min.css')}\n{_file('page.css')}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{_scripts(comparison, play)}</body>\n</html>\n"
    )


def _file(name: str) -> str:
    return files("oop_engine.lab.report").joinpath(name).read_text(encoding="utf-8")


def _scripts(comparison: Comparison, play: Play | None) -> str:
    """Return the data, the library of curves with its licence, and our script."""
    runs, sweep = shown_runs(comparison), comparison.scenario.sweep
    charts = {"state": state_curves(runs) if _has_states(runs) else [], "delays": delay_curves(runs)}
    if sweep is not None and _swept(comparison):
        charts["sweep"] = sweep_figures(comparison.runs, sweep)
    data = json.dumps(
        plain({"charts": charts, "play": play and play.data}), separators=(",", ":"), allow_nan=False
    )
    library = re.sub(r"^/\*!.*?\*/\s*", "", _file("vendor/uPlot.iife.min.js"))
    return (
        f'<script type="application/json" id="data">{data.replace("<", _LESS)}</script>\n'
        f"<script>\n/* uPlot {UPLOT}\n\n{_file('vendor/LICENSE')}*/\n{library}\n{_file('page.js')}</script>\n"
    )


def _head(comparison: Comparison) -> str:
    scenario = comparison.scenario
    verdicts = Counter(claim.verdict for claim in comparison.claims)
    total, failing, open_ = len(comparison.claims), verdicts["fails"], verdicts["not checked"]
    if failing:
        word, paint = f"✗ {failing} of {total} claims fail", "bad"
    elif open_:
        word, paint = f"? {open_} of {total} claims not checked", "unknown"
    else:
        word, paint = f"✓ all {total} claims hold", "good"
    return (
        f'<header>\n<p class="eyebrow">oop-engine · scenario {escape(scenario.name)}</p>\n'
        f"<h1>{escape(scenario.title)}</h1>\n{_paragraphs(_asked(comparison)[:1], 'about')}\n"
        f'<span class="verdict {paint}">{word}</span>\n'
        f'<p class="headline">{_bound(escape(headline(comparison)))}</p>\n</header>'
    )


def _bound(text: str) -> str:
    """Keep a number and its unit on one line."""
    return re.sub(r"(?<=\d) (?=[a-zA-Zµ]+)", "\u00a0", text)


def _about(comparison: Comparison) -> str:
    rest = _asked(comparison)[1:]
    return _section("The question", _paragraphs(rest)) if rest else ""


def _asked(comparison: Comparison) -> list[str]:
    """Return the paragraphs of the scenario's text, indented as it may be."""
    return [
        part
        for part in re.split(r"\n\s*\n", inspect.cleandoc(comparison.scenario.about).strip())
        if part.strip()
    ]


def _paragraphs(texts: list[str], of_class: str = "") -> str:
    start = f'<p class="{of_class}">' if of_class else "<p>"
    return "".join(_listed(part) or f"{start}{_words(part)}</p>" for part in texts)


def _listed(part: str) -> str:
    """Return a list, where each item begins with a star or a dash; else nothing."""
    items = re.split(r"(?m)^[*-] +", part)
    if len(items) < 2 or items[0].strip():
        return ""
    return f"<ul>{''.join(f'<li>{_words(item)}</li>' for item in items[1:])}</ul>"


def _words(part: str) -> str:
    """Return words with their code and stress, as docstrings have them."""
    text = " ".join(escape(part).split())
    text = re.sub(r"``(.+?)``|`([^`]+)`", lambda m: f"<code>{m[1] or m[2]}</code>", text)
    return re.sub(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])", r"<em>\1</em>", text)


def _tiles(comparison: Comparison) -> str:
    pair = headline_runs(shown_runs(comparison))
    if pair is None:
        return _tiles_of_one(shown_runs(comparison))
    ordered, free = pair
    tiles = (
        ("peak state", *_versus(size(free.peak_state_bytes), size(ordered.peak_state_bytes))),
        ("peak tuples kept", *_versus(count(free.peak_tuples), count(ordered.peak_tuples))),
        ("median delay", *_versus(span(free, free.delay_p50_s), span(ordered, ordered.delay_p50_s))),
        ("results", count(free.results), escape(f"of {count(free.tuples)} tuples; {_exactness(pair)}")),
    )
    return _tile_list(tiles)


def _tiles_of_one(runs: Sequence[Run]) -> str:
    """Without the other order there is nothing to set figures against."""
    if not runs:
        return ""
    run = best(runs)
    word = order_word(run)
    tiles = (
        ("peak state", size(run.peak_state_bytes), word),
        ("peak tuples kept", count(run.peak_tuples), word),
        ("median delay", span(run, run.delay_p50_s), word),
        ("results", count(run.results), escape(f"of {count(run.tuples)} tuples; {_exactness([run])}")),
    )
    return _tile_list(tiles)


def _tile_list(tiles: Sequence[tuple[str, str, str]]) -> str:
    cells = (
        f'<div class="tile"><dt>{name}</dt><dd class="big">{big}</dd><dd class="small">{small}</dd></div>'
        for name, big, small in tiles
    )
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def _play(comparison: Comparison, play: Play | None) -> str:
    if play is None:
        return ""
    caption = f"{_point(comparison, shown_runs(comparison)[0])}{play.caption} {_PLAYED}"
    if any(plan["middle"]["x"] for plan in play.data["plans"]):
        caption += "Finely dotted: the bound that half of the groups have passed. "
    drawing = plots.scene(play.data, "play-scene")
    labelled = drawing.replace("<svg ", f'<svg role="img" aria-label="{escape(caption, quote=True)}" ', 1)
    still = f'<div class="still">{labelled}</div>'
    panel = f'<div class="panel play" id="play"><div class="live"></div>{still}</div>'
    return _section("Play by play", f"<figure>{panel}<figcaption>{escape(caption)}</figcaption></figure>")


def _versus(free: str, ordered: str) -> tuple[str, str]:
    return f'<span class="out">{free}</span>', f'out of order; <b class="in">{ordered}</b> in order'


def _exactness(pair: Sequence[Run]) -> str:
    if not all(run.checked for run in pair):
        return "not checked"
    off = pair[-1].off or 0
    return f"{count(off)} off" if off else "equal to brute force"


def _plans(comparison: Comparison) -> str:
    figures = []
    for variant in comparison.plans:
        order = "in order" if variant.order == "in" else "out of order"
        head = f'<span class="chip {variant.order}"></span>{order}: {escape(variant.name)}'
        about = f"<p>{escape(words)}</p>" if (words := buffers(variant)) else ""
        drawing = _inline(draw([variant], heading=False))
        figures.append(f'<div class="panel of-{variant.order}"><h3>{head}</h3>{about}{drawing}</div>')
    caption = (
        f"{FAIR} Data flow from the sources at the top to the sink. A diamond marks an edge with punctuation; "
        "point at a box or an edge for its full text or its schema."
    )
    body = f'<div class="plans">{"".join(figures)}</div><figcaption>{caption}</figcaption>'
    heading = f"The plans ({len(figures)})"
    return f'<details class="fold"><summary><h2>{heading}</h2></summary><figure>{body}</figure></details>'


def _has_states(runs: Sequence[Run]) -> bool:
    return any(run.series for run in runs)


def _state(comparison: Comparison) -> str:
    runs = shown_runs(comparison)
    if not _has_states(runs):
        return ""
    banded = plots.binned(runs)[1]
    caption = (
        f"{_point(comparison, runs[0])}The state of each plan, over the time of the arrivals (virtual time)."
    )
    if banded:
        caption += (
            " Of so long a run each band goes from the lowest to the highest sample of its part, the line is their "
            "median; a sample is the most that was kept since the one before."
        )
    return _section("State over time", _figure(runs, plots.over_time(runs, "state"), caption, "state"))


def _swept(comparison: Comparison) -> bool:
    sweep = comparison.scenario.sweep
    return sweep is not None and len({str(run.parameters[sweep.parameter]) for run in comparison.runs}) > 1


def _sweep(comparison: Comparison) -> str:
    sweep = comparison.scenario.sweep
    if sweep is None or not _swept(comparison):
        return ""
    runs = comparison.runs
    caption = "One point a run. Axes with more than a factor of sixty between their ends are logarithmic."
    about = comparison.scenario.parameters[sweep.parameter].about
    heading = f"How it grows with {sweep.parameter}"
    note = f'<p class="note">{escape(sweep.parameter)}: {escape(about)}</p>'
    return _section(heading, note + _figure(runs, plots.sweep_curves(runs, sweep, "sweep"), caption, "sweep"))


def _delays(comparison: Comparison) -> str:
    runs = [run for run in shown_runs(comparison) if run.delays_s.size]
    if not runs:
        return ""
    caption = (
        f"{_point(comparison, runs[0])}The share of results that came within a delay. The excess is the "
        f"{EXCESS}."
    )
    return _section("Delays", _figure(runs, plots.delays(runs, "delays"), caption, "delays"))


def _claims(comparison: Comparison) -> str:
    items = "\n".join(map(_claim, comparison.claims))
    return _section("Claims", f'<ul class="claims">\n{items}\n</ul>')


def _claim(claim: Claim) -> str:
    sign, paint = _MARKS[claim.verdict]
    of_class = claim.verdict.replace(" ", "-")
    statement = (
        f'<p aria-label="{claim.verdict}"><span class="mark {paint}">{sign}</span>{escape(claim.claim)}</p>'
    )
    return f'<li class="{of_class}">{statement}{_figures_of(claim)}</li>'


def _figures_of(claim: Claim) -> str:
    """Figures along a sweep as a table, the others as a list."""
    rows = {k: v for k, v in claim.figures.items() if isinstance(v, dict) and len(v) > 1}
    heads = list(next(iter(rows.values()), {}))
    if len(heads) > _WIDEST or any(list(row) != heads for row in rows.values()):
        rows = {}
    others = {k: v for k, v in claim.figures.items() if k not in rows}
    listed = "".join(f"<dt>{escape(label(str(k)))}</dt><dd>{escape(text(v))}</dd>" for k, v in others.items())
    table = _small_table(heads, rows) if rows else ""
    return table + (f'<dl class="figures">{listed}</dl>' if listed else "")


def _small_table(heads: list[Any], rows: dict[str, dict[Any, Any]]) -> str:
    top = "".join(f'<th scope="col">{escape(label(str(head)))}</th>' for head in heads)
    lines = []
    for name, row in rows.items():
        cells = "".join(f"<td>{escape(text(row[head]))}</td>" for head in heads)
        lines.append(f'<tr><th scope="row" class="word">{escape(label(str(name)))}</th>{cells}</tr>')
    table = f"<table><thead><tr><th></th>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="scroll small">{table}</div>'


def _runs(comparison: Comparison) -> str:
    shown = [column for column in columns(comparison) if column.heading != "order"]
    heads = "".join(
        f'<th{_class(c.heading)} scope="col"{_hint(c.about)}>{escape(c.heading)}</th>' for c in shown
    )
    lines, last = [], None
    for run in comparison.runs:
        cells = "".join(_cell(c, run) for c in shown)
        lines.append(f"<tr{' class=first' if run.parameters != last else ''}>{cells}</tr>")
        last = run.parameters
    table = f'<table class="sortable"><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    note = (
        '<p class="note">Delay: from the end of the window, in virtual time. Latency: from the punctuation to the '
        "result that it released, in wall time. Point at a heading for its meaning.</p>"
    )
    return _section(
        "All runs",
        f'{note}<div class="panel scroll" tabindex="0" role="region" aria-label="All runs">{table}</div>',
    )


def _cell(column: Figure, run: Run) -> str:
    heading, shown = column.heading, column.show(run)
    if heading == "plan":
        chip = f'<span class="sub {run.order}"><span class="chip"></span>{order_word(run)}</span>'
        return f'<td class="word">{chip}{escape(shown)}</td>'
    off = heading in ("missing", "wrong") and run.exact and column.value is not None and column.value(run)
    value = "" if column.value is None else f' data-v="{_number(column.value(run))}"'
    return f"<td{value}{' class=off' if off else _class(heading)}>{escape(shown)}</td>"


def _number(value: float | None) -> str:
    """Return the key to sort a column by; unknown values come last."""
    return "1e308" if value is None or not math.isfinite(value) else repr(value)


def _class(heading: str) -> str:
    return ' class="word"' if heading in _WORDS else ""


def _hint(about: str) -> str:
    return f' title="{escape(about, quote=True)}"' if about else ""


def _foot(comparison: Comparison) -> str:
    made = ", ".join(f"{name} {number}" for name, number in versions().items())
    knobs = " ".join(f"<code>{escape(f'{k}={v}')}</code>" for k, v in comparison.parameters.items())
    again, rss = _again(comparison), size(comparison.peak_rss_bytes)
    return (
        f"<footer><p>Parameters: {knobs or 'none'}</p><p>Made by {escape(made)}; data {escape(comparison.data)}; "
        f"floats are equal to {CLOSE:g} of their value.</p><p>State and delays are measured in virtual time, "
        f"so they are the same on every machine; CPU, latency and tuples per second are this machine's. "
        f"The peak RSS of the process, with interpreter, libraries, traces and results, was {rss}. Again: "
        f"<code>{escape(again)}</code></p></footer>"
    )


def _again(comparison: Comparison) -> str:
    """Return the command that makes the same runs; a scenario of a file is given by its path."""
    scenario = comparison.scenario
    defaults = {name: parameter.default for name, parameter in scenario.parameters.items()}
    fixed = {k: v for k, v in comparison.parameters.items() if v != defaults.get(k)}
    if scenario.sweep is not None and not _swept(comparison):
        fixed[scenario.sweep.parameter] = comparison.parameters[scenario.sweep.parameter]
    words = ["oop-engine", "compare", scenario.file or scenario.name]
    for name, value in fixed.items():
        words += ["--set", f"{name}={value}"]
    return shlex.join(words)


def _point(comparison: Comparison, run: Run) -> str:
    sweep = comparison.scenario.sweep
    if sweep is None:
        return ""
    return f"At {sweep.parameter} = {text(run.parameters[sweep.parameter])} {sweep.unit}".rstrip() + ". "


def _section(heading: str, body: str) -> str:
    return f"<section>\n<h2>{escape(heading)}</h2>\n{body}\n</section>"


def _figure(runs: Sequence[Run], svg: str, caption: str, name: str) -> str:
    label = escape(caption, quote=True)
    labelled = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    still = f'<div class="still">{plots.legend(runs)}{labelled}</div>'
    panel = f'<div class="panel" data-chart="{name}">{still}</div>'
    return f"<figure>{panel}<figcaption>{escape(caption)}</figcaption></figure>"


def _inline(svg: str) -> str:
    """An SVG inside HTML needs no namespace."""
    return svg.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
