"""Metrics: a sample in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["prometheus"]

_HELP = {
    "oop_up_seconds": ("gauge", "Seconds since the service was started."),
    "oop_paused": ("gauge", "1 while nothing is read."),
    "oop_source_tuples_total": ("counter", "Tuples of a source."),
    "oop_source_unreadable_total": ("counter", "Rows of a source that could not be read (dead letters)."),
    "oop_source_nulls_total": ("counter", "Rows of a source without a value in a column."),
    "oop_source_unknown_columns_total": (
        "counter",
        "Rows of a source with a column that its schema does not have.",
    ),
    "oop_source_away": ("gauge", "1 while the server of a source is away."),
    "oop_source_losses_total": ("counter", "How often the server of a source went away."),
    "oop_source_silent_seconds": ("gauge", "Seconds since the last message of a source."),
    "oop_source_behind_seconds": ("gauge", "How far the bound of a source is behind the one ahead of all."),
    "oop_sink_away": ("gauge", "1 while the server of a sink is away: no source is read then."),
    "oop_sink_losses_total": ("counter", "How often the server of a sink went away."),
    "oop_bound": ("gauge", "The bound of an edge, in the unit of its stream."),
    "oop_bound_lag_seconds": ("gauge", "How far the bound of an edge is behind the clock."),
    "oop_bound_still_seconds": ("gauge", "Seconds since the bound of an edge has grown."),
    "oop_edge_tuples_total": ("counter", "Tuples that have passed an edge."),
    "oop_edge_punctuations_total": ("counter", "Punctuations that have passed an edge."),
    "oop_state_bytes": ("gauge", "Bytes that an operator keeps."),
    "oop_state_tuples": ("gauge", "Tuples that an operator keeps."),
    "oop_state_partials": ("gauge", "Partial aggregates that an operator keeps."),
    "oop_state_groups": ("gauge", "Groups that an operator keeps."),
    "oop_busy_seconds_total": ("counter", "Seconds that an operator was busy."),
    "oop_operator_events_total": ("counter", "Counts of an operator, such as late tuples."),
    "oop_checkpoints_total": ("counter", "Checkpoints of this process."),
    "oop_checkpoint_age_seconds": ("gauge", "Seconds since the last checkpoint."),
    "oop_checkpoint_still_seconds": ("gauge", "How long nothing was read for the last checkpoint."),
    "oop_checkpoint_bytes": ("gauge", "Bytes of the states of the last checkpoint."),
}

Figure = tuple[str, dict[str, str], Any]


def prometheus(sample: dict[str, Any]) -> str:
    """Return the figures of a sample; those that are not known are left out.

    >>> from oop_engine.service.dashboard.metrics import _line
    >>> _line("oop_bound", {"edge": 'a -> "b"'}, 40)
    'oop_bound{edge="a -> \\\\"b\\\\""} 40'
    """
    lines: dict[str, list[str]] = {name: [] for name in _HELP}
    for name, labels, value in _figures(sample):
        if value is not None:
            lines[name].append(_line(name, labels, value))
    text = []
    for name, figures in lines.items():
        if figures:
            kind, words = _HELP[name]
            text += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *figures]
    return "\n".join([*text, ""])


def _figures(sample: dict[str, Any]) -> Iterator[Figure]:
    yield "oop_up_seconds", {}, sample["up_s"]
    yield "oop_paused", {}, int(sample["paused"])
    for source in sample["sources"]:
        labels = {"source": source["name"]}
        yield "oop_source_tuples_total", labels, source["tuples"]
        yield "oop_source_unreadable_total", labels, source["unreadable"]
        for column, count in source["nulls"].items():
            yield "oop_source_nulls_total", labels | {"column": column}, count
        for column, count in source["unknown"].items():
            yield "oop_source_unknown_columns_total", labels | {"column": column}, count
        yield "oop_source_away", labels, int(source["away"])
        yield "oop_source_losses_total", labels, source["losses"]
        yield "oop_source_silent_seconds", labels, source["silent_s"]
        yield "oop_source_behind_seconds", labels, source["gap_s"]
    for sink in sample["sinks"]:
        yield "oop_sink_away", {"sink": sink["name"]}, int(sink["away"])
        yield "oop_sink_losses_total", {"sink": sink["name"]}, sink["losses"]
    for edge in sample["edges"]:
        labels = {"edge": edge["name"], "input": edge["input"]}
        yield "oop_bound", labels, edge["below"]
        yield "oop_bound_lag_seconds", labels, edge["clock_s"]
        yield "oop_bound_still_seconds", labels, None if edge["below"] is None else edge["still_s"]
        yield "oop_edge_tuples_total", labels, edge["tuples"]
        yield "oop_edge_punctuations_total", labels, edge["punctuations"]
    for node in sample["nodes"]:
        if "state" in node:
            yield from _of_operator(node)
    yield from _of_checkpoints(sample["checkpoints"])


def _of_operator(node: dict[str, Any]) -> Iterator[Figure]:
    labels = {"operator": node["name"]}
    state = node["state"]
    yield "oop_state_bytes", labels, state["nbytes"]
    for name in ("tuples", "partials", "groups"):
        yield f"oop_state_{name}", labels, state[name]
    yield "oop_busy_seconds_total", labels, node["busy_s"]
    for event, count in node["counts"].items():
        yield "oop_operator_events_total", {**labels, "event": event}, count


def _of_checkpoints(checkpoints: dict[str, Any]) -> Iterator[Figure]:
    yield "oop_checkpoints_total", {}, checkpoints["count"]
    yield "oop_checkpoint_age_seconds", {}, checkpoints["age_s"]
    if checkpoints["last"]:
        last = checkpoints["last"][0]
        yield "oop_checkpoint_still_seconds", {}, last["still_s"]
        yield "oop_checkpoint_bytes", {}, last["bytes"]


def _line(name: str, labels: dict[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
