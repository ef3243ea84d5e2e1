"""Feeds of queries: in the form that a runner takes, and how far out of order they are."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from oop_engine.core.errors import UsageError
from oop_engine.core.operator import Message
from oop_engine.core.schema import Schema
from oop_engine.query.event_time import Disorder
from oop_engine.runners.feeds.forms import Intake
from oop_engine.traces.csv_format import CsvFormat
from oop_engine.traces.folder import LeftOut, files_of
from oop_engine.traces.lengths import length_text
from oop_engine.traces.profiling import Profile, profile
from oop_engine.traces.trace import Trace, open_trace

__all__ = ["CsvFiles", "disorder_of", "files_in", "opened", "profile_of"]

_LOG = logging.getLogger("oop_engine")


class CsvFiles(NamedTuple):
    """Files of CSV, and how they are written."""

    path: str | Path
    csv: CsvFormat


def opened(feed: Any, schema: Schema) -> Any:
    """Return a feed with the files that a path names opened; all others as they are."""
    path, csv = feed if isinstance(feed, CsvFiles) else (feed, None)
    if not isinstance(path, str | Path):
        return feed
    traces = [open_trace(path, schema, csv=csv) for path in files_in(path)]
    return traces[0] if len(traces) == 1 else traces


def files_in(path: str | Path) -> list[Path]:
    """Return a file, or the files of a folder or of a pattern (``logs/*.csv``) in the order of their names.

    Folders within one are read if they are partitions (``year=2026``); files left out are logged, once a suffix.
    Raises ``UsageError`` if there are none.
    """
    given = Path(path)
    if "*" in given.name:
        files = sorted(given.parent.glob(given.name))
    elif given.is_dir():
        files = [given / name for name in files_of(given, LeftOut())]
    else:
        return [given]
    if not files:
        msg = f"{given}: there is no such file: give the path of a trace, of a folder of them, or a pattern"
        raise UsageError(msg)
    return files


def disorder_of(feed: Any, schema: Schema, per: Sequence[str], name: str) -> Disorder:
    """Return the least disorder that loses no record of a feed at rest, and log it.

    The feed is read once.  O(rows).  Raises ``UsageError`` for a feed that can be read only once, or is not known yet.
    """
    if feed is None or isinstance(feed, Iterator | AsyncIterable) or hasattr(feed, "acknowledge"):
        why = "its feed is not known yet" if feed is None else "its feed can be read only once"
        msg = (
            f"source {name!r}: how late may a record be? The disorder cannot be measured, for {why}: "
            "give it, event_time('ts', disorder='90 s'), or in SQL WATERMARK FOR ts AS ts - INTERVAL '90' SECOND"
        )
        raise UsageError(msg)
    profile = profile_of(feed, schema, per, name)
    most = (profile.lateness if profile.own_lateness is None else profile.own_lateness).most
    text = length_text(most, schema.unit)
    used = f"disorder={text!r}" if most else "disorder='ordered'"
    within = f" within each {', '.join(per)}" if per else ""
    late = f"come up to {text} out of order{within}" if most else f"come in order{within}"
    _LOG.warning("source %r: records %s; used: event_time(%r, %s)", name, late, schema.progressing, used)
    return text if most else "ordered"


def profile_of(feed: Any, schema: Schema, by: str | Sequence[str], name: str) -> Profile:
    """Return how far out of order a feed at rest is.  Raises ``UsageError`` without one, ``GraphError`` for columns."""
    if feed is None:
        msg = f"profile: source {name!r} has no feed: give {name}=, a path, a data frame or rows"
        raise UsageError(msg)
    columns = (by,) if isinstance(by, str) else tuple(by)
    schema.require(columns, "profile: by")
    schema = schema.select(
        [f.name for f in schema.fields if f.name in columns or not pa.types.is_nested(f.type)]
    )
    return profile(_messages(opened(feed, schema), schema, name), schema, columns)


def _messages(feed: Any, schema: Schema, name: str) -> Iterator[Message]:
    if isinstance(feed, Trace):
        return iter(feed)
    if isinstance(feed, list) and feed and all(isinstance(item, Trace) for item in feed):
        return itertools.chain.from_iterable(feed)
    return Intake(f"source {name!r}", schema, "event_time", lambda *_: None).messages(feed)
