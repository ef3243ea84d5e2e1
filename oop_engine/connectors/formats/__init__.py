"""Formats of messages: those of here, and those that others register."""

from oop_engine.connectors.formats import (  # noqa: F401
    arrow_messages,
    debezium_messages,
    json_messages,
    msgpack_messages,
    rows,
)
from oop_engine.connectors.formats.csv_messages import CsvMessages
from oop_engine.connectors.message_format import MESSAGE_FORMATS, MessageFormat
from oop_engine.connectors.payload import metadata_in
from oop_engine.connectors.registry.declared_format import DeclaredFormat
from oop_engine.connectors.source import LiveSource, Unreadable
from oop_engine.core.schema import Schema
from oop_engine.traces.csv_format import CsvFormat

__all__ = ["MESSAGE_FORMATS", "format_by_suffix", "made_format"]


def made_format(source: LiveSource, schema: Schema, place: str, unreadable: Unreadable) -> MessageFormat:
    """Return the format in which a source's data are read; ``place`` and ``unreadable``: see ``MessageFormat``."""
    metadata = metadata_in(schema, source.metadata, place)
    source.wanted = frozenset(metadata)
    if isinstance(source.format, DeclaredFormat):
        return source.format.reader(schema, place, unreadable, metadata)
    if not isinstance(source.format, CsvFormat) and source.format != "csv":
        kind = MESSAGE_FORMATS[source.format]
        return (
            kind(schema, place, unreadable, metadata=metadata)
            if metadata
            else kind(schema, place, unreadable)
        )
    csv = source.format if isinstance(source.format, CsvFormat) else None
    in_file, by_lines = source.is_file, source.by_lines
    return CsvMessages(schema, place, unreadable, csv, metadata, in_file=in_file, by_lines=by_lines)


def format_by_suffix(path: str) -> str:
    """Return the format of messages that is the suffix of a path or an address; ``"jsonl"`` if none is."""
    suffix = path.rpartition(".")[2]
    return suffix if suffix in MESSAGE_FORMATS else "jsonl"
