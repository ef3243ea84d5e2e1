"""Registry messages: formats with a schema registry: a payload is a row, of the schema that it names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import chain, groupby
from typing import Any

import pyarrow as pa

from oop_engine.connectors.message_format import MessageFormat
from oop_engine.connectors.payload import Metadata
from oop_engine.connectors.registry.schemas import Given, Schemas
from oop_engine.connectors.registry.wire import head_of
from oop_engine.connectors.source import Unreadable
from oop_engine.core.operator import Message
from oop_engine.core.schema import Schema
from oop_engine.traces.format import LINE, REFUSED

__all__ = ["RegistryMessages"]

_SHOWN = 1000
Rows = tuple[dict[str, pa.Array], list[str | None]]
"""Columns of some rows, and for each row the reason why it cannot be read."""


class RegistryMessages(MessageFormat):
    """Payloads whose heads name their schemas in ``schemas``; rows of one schema are read together."""

    by_lines = False
    waits = True

    def __init__(
        self, schema: Schema, place: str, unreadable: Unreadable, schemas: Schemas, metadata: Metadata
    ) -> None:  # fmt: skip
        super().__init__(schema, place, unreadable, metadata)
        self._schemas = schemas
        self._made = dict[int, Any]()

    async def ready(self, data: Any, *, once: bool = False) -> None:
        """Fetch the schemas that some data need; ``once``: do not wait for a registry that is away."""
        await self._schemas.fetch([data] if isinstance(data, bytes) else data, once=once)

    def is_row(self, payload: bytes) -> bool:
        """Return True."""
        return True

    def joined(self, pieces: list[Any]) -> Any | None:
        """Return a list of all payloads."""
        return list(chain.from_iterable([p] if isinstance(p, bytes) else p for p in pieces))

    def messages(self, data: Any) -> Iterator[Message]:
        """Yield the rows of payloads."""
        for number, members in groupby([data] if isinstance(data, bytes) else data, head_of):
            payloads = list(members)
            columns, reasons = self._columns(number, payloads)
            if any(reasons):
                shown = [
                    None if why is None else each[:_SHOWN]
                    for each, why in zip(payloads, reasons, strict=True)
                ]
                columns[REFUSED], columns[LINE] = pa.array(reasons, pa.string()), pa.array(shown, pa.binary())
            yield from self._pages([pa.RecordBatch.from_pydict(columns)])

    def _columns(self, number: int | str, payloads: list[bytes]) -> Rows:
        if isinstance(number, str):
            return self._nothing(payloads, number)
        if (given := self._schemas.get(number)) is None:
            return self._nothing(payloads, f"the schema registry has no schema {number}")
        if number not in self._made:
            try:
                self._made[number] = self._read_schema(given)
            except ValueError as error:
                self._made[number] = f"schema {number} cannot be read: {error}"[:200]
        if isinstance(made := self._made[number], str):
            return self._nothing(payloads, made)
        return self._rows(made, payloads)

    def _read_schema(self, given: Given | str) -> Any:
        if isinstance(given, str):
            raise ValueError(given)
        return self._schema_of(*given)

    def _nothing(self, payloads: list[bytes], reason: str) -> Rows:
        columns = {field.name: pa.nulls(len(payloads), field.type) for field in self.columns}
        return columns, [reason] * len(payloads)

    @abstractmethod
    def _schema_of(self, text: str, kind: str, references: dict[str, str]) -> Any:
        """Return the schema of a text, as ``_rows`` is given it; raises ``ValueError`` if it is none."""

    @abstractmethod
    def _rows(self, schema: Any, payloads: list[bytes]) -> Rows:
        """Return the rows of payloads of one schema."""
