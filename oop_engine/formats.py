"""Formats of files and messages that need options; the others are named by a text (``"json"``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.connectors.registry.avro import Avro as Avro
    from oop_engine.connectors.registry.protobuf import Protobuf as Protobuf
    from oop_engine.traces.csv_format import CsvFormat as CsvFormat
else:
    __getattr__, __dir__ = shelf(__name__)
