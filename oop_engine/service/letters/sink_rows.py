"""Rows of sinks: a dead letter of a sink as the row that it was, from JSON."""

from __future__ import annotations

import json
from typing import Any

from oop_engine.connectors.formats.json_messages import JsonMessages
from oop_engine.connectors.formats.payloads import check_payloads
from oop_engine.connectors.formats.rows import Rows
from oop_engine.connectors.source import Unreadable
from oop_engine.core.errors import GraphError
from oop_engine.core.page import Page
from oop_engine.core.schema import Schema
from oop_engine.core.values.kinds import reads_texts

__all__ = ["pages_of_letter"]


def pages_of_letter(record: str, schema: Schema, place: str, refuse: Unreadable) -> list[Page]:
    """Return the row of a dead letter; one that cannot be read is refused.

    Lists, structs and durations are read as objects of Python, since JSON lines have no columns of them.
    """
    try:
        check_payloads(place, "jsonl", schema.plain().fields)
        as_text = all(map(reads_texts, schema.fields.types))
        data: Any = [record.encode()] if as_text else json.loads(record)
    except (GraphError, ValueError) as error:
        refuse(f"cannot be written again: {error}", record, 1)
        return []
    reader = (JsonMessages if as_text else Rows)(schema, place, refuse)
    return [message for message in reader.messages(data) if isinstance(message, Page)]
