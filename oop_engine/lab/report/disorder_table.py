"""The profile of a trace as tables: how late tuples are, by group, and the cost of policies."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from oop_engine.core.units import TIME_UNITS, to_seconds
from oop_engine.lab.report.table import grid
from oop_engine.lab.report.words import count, seconds, text
from oop_engine.traces.profiling import Candidate, Lateness, Profile

__all__ = ["profile_tables", "verdict"]

_SHAPES = {
    "ordered": "nothing is out of order",
    "band": "tuples are late by up to a bound, all through the trace",
    "block": "parts of the trace come as a whole, one after the other, each in disorder",
    "tail": "a few stragglers are far later than the other late tuples",
}


def profile_tables(profile: Profile) -> Group:
    """Return a summary of the trace, then lateness, groups and candidates as tables."""
    shape = f"shape: {profile.shape}, {_SHAPES[profile.shape]}"
    if profile.shape == "block":
        length = _span(profile, profile.block_length)
        shape += f" (parts of {count(profile.block_tuples)} tuples, {length}, on average)"
    parts: list[Group | Text] = [
        Text(verdict(profile), style="bold"),
        Text(shape),
        Text(),
        _lateness(profile),
    ]
    if profile.groups:
        parts.append(_groups(profile))
    return Group(*parts, _candidates(profile))


def verdict(profile: Profile) -> str:
    """Return which policies lose nothing, and little, and how long after their ends windows are emitted then."""
    if not profile.tuples:
        return "verdict: no tuples, so no policy is better than another"
    best: dict[int, Candidate] = {}
    for each in sorted(profile.candidates, key=lambda each: (each.delay, each.late)):
        best.setdefault(each.late, each)
    lossy = [each for late, each in best.items() if late and each.delay < best[0].delay]
    parts = [f"{best[0].policy} loses nothing, {_emitted(profile, best[0])}"]
    for each in sorted(lossy, key=lambda each: each.late)[:1]:
        share = 100 * each.late / profile.tuples
        parts.append(f"{each.policy} loses {share:.2g} %, {_emitted(profile, each)}")
    return f"verdict: {'; '.join(parts)}"


def _emitted(profile: Profile, candidate: Candidate) -> str:
    if not candidate.delay:
        return "and windows are emitted at their ends"
    return f"and windows are emitted {_span(profile, candidate.delay)} after their ends"


def _lateness(profile: Profile) -> Group:
    def row(name: str, lateness: Lateness, unit: str | None = None) -> list[str]:
        values = (lateness.p50, lateness.p99, lateness.p999, lateness.most)
        shown = [f"{count(v)} {unit}" if unit else _span(profile, v) for v in values]
        return [name, _share(lateness.out_of_order, profile.tuples), *shown]

    rows = [row("behind the largest before it", profile.lateness)]
    if profile.own_lateness is not None:
        rows.append(row(f"the same within {', '.join(profile.by)}", profile.own_lateness))
    rows.append(row("larger ones before it", profile.larger_before, "tuples"))
    headings = ["how late a tuple is", "out of order", "p50", "p99", "p99.9", "most"]
    return grid("disorder", headings, rows, words=headings[:1])


def _groups(profile: Profile) -> Group:
    rows = [
        [
            text(group.group),
            count(group.tuples),
            _share(group.out_of_order, group.tuples),
            _span(profile, group.most),
            _span(profile, group.behind),
        ]
        for group in profile.groups
    ]
    title = f"groups: {count(profile.groups_known)}"
    if len(rows) < profile.groups_known:
        title += f", the {len(rows)} largest"
    headings = ["group", "tuples", "out of order in it", "at most by", "behind the stream"]
    return grid(title, headings, rows, words=headings[:1])


def _candidates(profile: Profile) -> Group:
    rows = [
        [c.policy, _share(c.late, profile.tuples), _span(profile, c.delay), count(c.state)]
        for c in profile.candidates
    ]
    headings = ["Punctuate(...)", "tuples late", "delay", "tuples an in-order plan keeps"]
    return grid("cost of a policy", headings, rows, words=headings[:1])


def _span(profile: Profile, value: float) -> str:
    if profile.unit in TIME_UNITS:
        return seconds(value * to_seconds(1, profile.unit))
    return f"{count(value)} {profile.unit}"


def _share(part: int, whole: int) -> str:
    return f"{count(part)} ({part / whole:.2%})" if whole else "0"
