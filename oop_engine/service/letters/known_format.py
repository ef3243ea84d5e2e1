"""Known format: the message format of a source is one that there is, and has lines where the source needs them."""

from __future__ import annotations

from oop_engine.connectors.formats import MESSAGE_FORMATS
from oop_engine.connectors.registry.declared_format import DeclaredFormat
from oop_engine.connectors.source import LiveSource
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.traces.csv_format import CsvFormat

__all__ = ["check_format"]


def check_format(name: str, source: LiveSource) -> None:
    """Raise ``UsageError`` if there is no such format, or it has no lines where the source is read by lines."""
    declared = isinstance(source.format, DeclaredFormat)
    kind = "csv" if isinstance(source.format, CsvFormat) else source.format
    if not declared and kind not in MESSAGE_FORMATS:
        msg = f"source {name!r}: unknown message format {source.format!r}: use one of {', '.join(MESSAGE_FORMATS)}"
        msg += did_you_mean(str(kind), MESSAGE_FORMATS)
        raise UsageError(msg)
    if source.by_lines and (declared or not MESSAGE_FORMATS[str(kind)].by_lines):
        known = ", ".join(each for each, known_format in MESSAGE_FORMATS.items() if known_format.by_lines)
        shown = repr(getattr(source.format, "name", source.format))
        msg = f"source {name!r}: is read by lines; got format {shown}, which has none: use one of {known}"
        raise UsageError(msg)
