"""Kinds: whether something that a feed gives is a message, data as a whole, a row of values, or none of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oop_engine.core.change import Change
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Joint, Linear, Watermark
from oop_engine.core.values.arrow_data import is_arrow
from oop_engine.runners.feeds.rows import is_row
from oop_engine.runners.feeds.tables import fields_of_array
from oop_engine.traces.trace import Trace

__all__ = ["MESSAGES", "READY", "is_of_service", "is_values", "is_whole"]

MESSAGES = Page, Linear, GroupWise, Joint, Watermark
READY = (*MESSAGES, Change)


def is_whole(feed: Any) -> bool:
    """Return whether a feed is one thing, not an iterable of them: a message, Arrow data, columns."""
    return isinstance(feed, (*READY, Mapping)) or is_arrow(feed) or fields_of_array(feed) is not None


def is_of_service(feed: Any) -> bool:
    """Return whether something is a source of a service, which yields data with their positions."""
    return (
        not isinstance(feed, type) and callable(getattr(feed, "read", None)) and hasattr(feed, "replayable")
    )


def is_values(given: Any) -> bool:
    """Return whether something is a row of values in the order of the columns: a tuple or list that names none."""
    return isinstance(given, list | tuple) and len(given) > 0 and not is_row(given) and is_value(given[0])


def is_value(given: Any) -> bool:
    """Return whether something can be the first value of a row."""
    inner = isinstance(given, (*READY, Trace, list, tuple)) or is_row(given)
    return not inner and not is_arrow(given) and fields_of_array(given) is None
