"""Declared format: a format that has parameters of its own, such as the address of a schema registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

if TYPE_CHECKING:
    from oop_engine.connectors.message_format import MessageFormat
    from oop_engine.connectors.payload import Metadata
    from oop_engine.core.schema import Schema

__all__ = ["DeclaredFormat", "PayloadsOf"]

PayloadsOf = Callable[[pa.RecordBatch], list[bytes]]
"""Makes messages of rows."""


class DeclaredFormat:
    """A format of messages, of sources and of sinks; ``name``: as the command line has it."""

    name: ClassVar[str]

    def reader(
        self, schema: Schema, place: str, unreadable: Callable[..., None], metadata: Metadata
    ) -> MessageFormat:
        """Return the format of a source."""
        raise NotImplementedError

    async def writer(self, fields: pa.Schema, topic: str, place: str) -> PayloadsOf:
        """Return the function that makes messages of rows of ``fields`` for a topic; called when a sink opens.

        Raises ``GraphError`` if its messages cannot have these columns, ``SetupError`` if its server refuses.
        """
        raise NotImplementedError
