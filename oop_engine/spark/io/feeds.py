"""Feeds: all that may be the source of a graph on Spark, and how each becomes segments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from oop_engine.core.close_names import renamed
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.schema import Schema
from oop_engine.runners.changes import Changes
from oop_engine.runners.feeds.bad_rows import Refusals
from oop_engine.runners.feeds.kinds import is_of_service
from oop_engine.spark.io.segments import Files, Segments
from oop_engine.spark.io.spool import spool

__all__ = ["Feed", "check_feeds", "schemas_of", "segments_of"]

Feed: TypeAlias = Any
"""A source: ``Segments``, the path of a trace or of a folder of traces, a DataFrame of Spark, or anything that
``replay`` takes (which is spooled first)."""


def check_feeds(plan: Plan, feeds: Mapping[str, Feed]) -> None:
    """Raise ``UsageError`` unless there is a feed for each source of the graph, and no other, which a task can read."""
    sources = [node.name for node in plan.of_kind("source")]
    if set(feeds) != set(sources):
        got = ", ".join(feeds) or "none"
        msg = f"graph {plan.name!r} has the sources {', '.join(sources)}; got feeds for {got}: give one for each"
        msg += renamed(feeds, sources)
        raise UsageError(msg)
    for name, feed in feeds.items():
        if is_of_service(feed):
            msg = (
                f"graph {plan.name!r}, source {name!r}: {type(feed).__name__} is a source of a service (serve), and a "
                "task of Spark may have to read it again: give a trace, a folder of traces, a DataFrame, or rows"
            )
            raise UsageError(msg)


def segments_of(
    plan: Plan, feeds: Mapping[str, Feed], folder: Path, rows: int, refusals: Refusals | None = None
) -> dict[str, Segments]:
    """Return every feed in segments; those given as rows and messages are spooled together, below ``folder``."""
    schemas = schemas_of(plan)
    by_source: dict[str, Segments] = {}
    messages: dict[str, Any] = {}
    for name, feed in feeds.items():
        match feed:
            case str() | Path():
                by_source[name] = Files(str(Path(feed).absolute()), schemas[name])
            case Segments():
                by_source[name] = feed
            case _:
                messages[name] = feed
    if messages:
        of_them = {name: schemas[name] for name in messages}
        by_source |= spool(messages, of_them, folder / "feeds", rows, Changes(plan), refusals)
    return {name: by_source[name] for name in schemas if name in by_source}


def schemas_of(plan: Plan) -> dict[str, Schema]:
    """Return the schema of each source."""
    return {node.name: plan.schema(Stream(node.name)) for node in plan.of_kind("source")}
