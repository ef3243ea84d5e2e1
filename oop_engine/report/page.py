"""The page of a comparison: one HTML file that opens from disk and needs nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from oop_engine.compare import Comparison, Run
from oop_engine.report import plots
from oop_engine.report.columns import columns, shown_runs, span
from oop_engine.report.drawing import draw
from oop_engine.report.headline import headline, headline_runs
from oop_engine.report.words import count, size, text
from oop_engine.scenario import Claim

__all__ = ["page"]

_WORDS = ("order", "plan")
_MARKS = {"holds": ("✓", "good"), "fails": ("✗", "bad"), "not checked": ("?", "unknown")}
_WIDEST = 14  # columns of a table of figures


def page(comparison: Comparison) -> str:
    """Return the report as HTML: headline, plans, state over time, curves, delays, claims, runs.

    Nothing is loaded from anywhere and no script runs.  The size is bounded by the number
    of runs, not by that of results.
    """
    title = f"{comparison.scenario.title}: in order and out of order"
    style = files("oop_engine.report").joinpath("page.css").read_text(encoding="utf-8")
    sections = (_head, _tiles, _about, _plans, _state, _sweep, _claims, _delays, _runs, _foot)
    body = "\n".join(found for section in sections if (found := section(comparison)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
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
    return _section("What is asked", _paragraphs(rest)) if rest else ""


def _asked(comparison: Comparison) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in comparison.scenario.about.strip().split("\n\n")]


def _paragraphs(texts: list[str], of_class: str = "") -> str:
    start = f'<p class="{of_class}">' if of_class else "<p>"
    return "".join(start + re.sub("``(.+?)``", r"<code>\1</code>", escape(text)) + "</p>" for text in texts)


def _tiles(comparison: Comparison) -> str:
    pair = headline_runs(shown_runs(comparison))
    if pair is None:
        return ""
    ordered, free = pair
    tiles = (
        ("peak state", *_versus(size(free.peak_state_bytes), size(ordered.peak_state_bytes))),
        ("peak tuples kept", *_versus(count(free.peak_tuples), count(ordered.peak_tuples))),
        ("median delay", *_versus(span(free, free.delay_p50_s), span(ordered, ordered.delay_p50_s))),
        ("results", count(free.results), escape(f"of {count(free.tuples)} tuples; {_exactness(pair)}")),
    )
    cells = (
        f'<div class="tile"><dt>{name}</dt><dd class="big">{big}</dd><dd class="small">{small}</dd></div>'
        for name, big, small in tiles
    )
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def _versus(free: str, ordered: str) -> tuple[str, str]:
    return f'<span class="out">{free}</span>', f'out of order; <b class="in">{ordered}</b> in order'


def _exactness(pair: tuple[Run, Run]) -> str:
    if not all(run.checked for run in pair):
        return "not checked"
    off = pair[1].off or 0
    return f"{count(off)} off" if off else "equal to brute force"


def _plans(comparison: Comparison) -> str:
    figures = []
    for variant in comparison.plans:
        order = "in order" if variant.order == "in" else "out of order"
        head = f'<span class="chip {variant.order}"></span>{order}: {escape(variant.name)}'
        figures.append(
            f'<div class="panel of-{variant.order}"><h3>{head}</h3>{_inline(draw([variant], heading=False))}</div>'
        )
    caption = (
        "Data flow from the sources at the top to the sink. A diamond says that punctuation travels on that edge; "
        "point at a box or an edge for its full text or its schema."
    )
    body = f'<div class="plans">{"".join(figures)}</div><figcaption>{caption}</figcaption>'
    return _section("The plans", f"<figure>{body}</figure>")


def _state(comparison: Comparison) -> str:
    runs = shown_runs(comparison)
    if not any(run.series for run in runs):
        return ""
    caption = (
        f"{_point(comparison, runs[0])}What each plan keeps, over the time of the arrivals (virtual time)."
    )
    return _section("State over time", _figure(runs, plots.over_time(runs, "state"), caption))


def _sweep(comparison: Comparison) -> str:
    sweep = comparison.scenario.sweep
    if sweep is None or len({str(run.parameters[sweep.parameter]) for run in comparison.runs}) < 2:
        return ""
    runs = comparison.runs
    caption = "One point a run. Axes with more than a factor of sixty between their ends are logarithmic."
    about = comparison.scenario.parameters[sweep.parameter].about
    heading = f"How it grows with {sweep.parameter}"
    note = f'<p class="note">{escape(sweep.parameter)}: {escape(about)}</p>'
    return _section(heading, note + _figure(runs, plots.sweep_curves(runs, sweep, "sweep"), caption))


def _delays(comparison: Comparison) -> str:
    runs = [run for run in shown_runs(comparison) if run.delays_s.size]
    if not runs:
        return ""
    caption = (
        f"{_point(comparison, runs[0])}The share of results that came within a delay. The excess is over a "
        "clairvoyant, who answers when the last tuple of a result has arrived: 0 is perfect."
    )
    return _section("Delays", _figure(runs, plots.delays(runs, "delays"), caption))


def _claims(comparison: Comparison) -> str:
    items = "\n".join(map(_claim, comparison.claims))
    return _section("Claims", f'<ul class="claims">\n{items}\n</ul>')


def _claim(claim: Claim) -> str:
    sign, paint = _MARKS[claim.verdict]
    of_class = claim.verdict.replace(" ", "-")
    said = (
        f'<p aria-label="{claim.verdict}"><span class="mark {paint}">{sign}</span>{escape(claim.claim)}</p>'
    )
    return f'<li class="{of_class}">{said}{_figures_of(claim)}</li>'


def _figures_of(claim: Claim) -> str:
    """Figures along a sweep as a table, the others as a list."""
    rows = {k: v for k, v in claim.figures.items() if isinstance(v, dict) and len(v) > 1}
    heads = list(next(iter(rows.values()), {}))
    if len(heads) > _WIDEST or any(list(row) != heads for row in rows.values()):
        rows = {}
    others = {k: v for k, v in claim.figures.items() if k not in rows}
    listed = "".join(f"<dt>{escape(str(k))}</dt><dd>{escape(text(v))}</dd>" for k, v in others.items())
    table = _small_table(heads, rows) if rows else ""
    return table + (f'<dl class="figures">{listed}</dl>' if listed else "")


def _small_table(heads: list[Any], rows: dict[str, dict[Any, Any]]) -> str:
    top = "".join(f'<th scope="col">{escape(str(head))}</th>' for head in heads)
    lines = []
    for name, row in rows.items():
        cells = "".join(f"<td>{escape(text(row[head]))}</td>" for head in heads)
        lines.append(f'<tr><th scope="row" class="word">{escape(str(name))}</th>{cells}</tr>')
    table = f"<table><thead><tr><th></th>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="scroll small">{table}</div>'


def _runs(comparison: Comparison) -> str:
    shown = columns(comparison)
    heads = "".join(
        f'<th{_class(c.heading)} scope="col"{_hint(c.about)}>{escape(c.heading)}</th>' for c in shown
    )
    lines, last = [], None
    for run in comparison.runs:
        cells = "".join(_cell(c.heading, c.show(run), run) for c in shown)
        lines.append(f"<tr{' class=first' if run.parameters != last else ''}>{cells}</tr>")
        last = run.parameters
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    note = (
        '<p class="note">Delay: from the end of the window, in virtual time. Latency: from the punctuation to the '
        "result that it released, in wall time. Point at a heading for what it says.</p>"
    )
    return _section(
        "All runs",
        f'{note}<div class="panel scroll" tabindex="0" role="region" aria-label="All runs">{table}</div>',
    )


def _cell(heading: str, shown: str, run: Run) -> str:
    if heading == "order":
        return f'<td class="word"><span class="{run.order}"><span class="chip"></span>{shown}</span></td>'
    off = heading in ("missing", "wrong") and run.exact and run.off
    return f"<td{' class=off' if off else _class(heading)}>{escape(shown)}</td>"


def _class(heading: str) -> str:
    return ' class="word"' if heading in _WORDS else ""


def _hint(about: str) -> str:
    return f' title="{escape(about, quote=True)}"' if about else ""


def _foot(comparison: Comparison) -> str:
    knobs = " ".join(f"<code>{escape(f'{k}={v}')}</code>" for k, v in comparison.parameters.items())
    again = f"oop-engine compare {comparison.scenario.name}"
    return (
        f"<footer><p>Parameters: {knobs or 'none'}</p><p>State and delays are measured in virtual time, so they are "
        f"the same on every machine; CPU, latency and tuples per second are this machine's. Again: "
        f"<code>{escape(again)}</code></p></footer>"
    )


def _point(comparison: Comparison, run: Run) -> str:
    sweep = comparison.scenario.sweep
    if sweep is None:
        return ""
    return f"At {sweep.parameter} = {text(run.parameters[sweep.parameter])} {sweep.unit}".rstrip() + ". "


def _section(heading: str, body: str) -> str:
    return f"<section>\n<h2>{escape(heading)}</h2>\n{body}\n</section>"


def _figure(runs: Sequence[Run], svg: str, caption: str) -> str:
    label = escape(caption, quote=True)
    labelled = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    panel = f'<div class="panel">{plots.legend(runs)}{labelled}</div>'
    return f"<figure>{panel}<figcaption>{escape(caption)}</figcaption></figure>"


def _inline(svg: str) -> str:
    """An SVG inside HTML needs no namespace."""
    return svg.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
