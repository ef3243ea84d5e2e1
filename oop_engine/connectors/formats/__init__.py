"""Formats of messages: those of here, and those that others register."""

from oop_engine.connectors.formats import arrow_messages, msgpack_messages, rows, text_messages  # noqa: F401
from oop_engine.connectors.message_format import MESSAGE_FORMATS

__all__ = ["MESSAGE_FORMATS"]
