"""Given: the feeds of a run, checked against the sources of its graph, each with its intake."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from oop_engine.core.close_names import renamed
from oop_engine.core.errors import UsageError
from oop_engine.core.schema import Schema
from oop_engine.runners.feeds.bad_rows import Refusals
from oop_engine.runners.feeds.forms import Intake

__all__ = ["check_feeds", "intakes"]


def check_feeds(call: str, graph: str, feeds: Mapping[str, Any], sources: list[str]) -> None:
    """Raise ``UsageError`` unless ``feeds`` has one for each source, and none is the path of a file."""
    files = [feeds] if not isinstance(feeds, Mapping) else feeds.values()
    for wrong in (feed for feed in files if feed is feeds or isinstance(feed, str | bytes | PathLike)):
        form = f"rows by source, such as {{{sources[0]!r}: rows}} or {{{sources[0]!r}: open_trace(path, time=...)}}"
        msg = f"{call}: feeds must be {form}; got {wrong if isinstance(wrong, str) else type(wrong).__name__}"
        raise UsageError(msg)
    if set(feeds) != set(sources):
        got = f"got feeds for {', '.join(feeds) or 'none'}"
        msg = f"{call}: graph {graph!r} has the sources {', '.join(sources)}; {got}{renamed(feeds, sources)}"
        raise UsageError(msg)


def intakes(graph: str, schemas: Mapping[str, Schema], refusals: Refusals) -> dict[str, Intake]:
    """Return an intake for each source of ``schemas``, with the bad rows of a run."""
    places = {name: f"graph {graph!r}, source {name!r}" for name in schemas}
    return {
        name: Intake(
            place,
            schemas[name],
            f"a feed of {refusals.call}",
            refusals.of(name, place),
            refusals.of_trace(name, place),
        )
        for name, place in places.items()
    }
