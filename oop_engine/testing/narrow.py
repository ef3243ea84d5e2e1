"""A run of an operator over the columns that it reads, and no others."""

from __future__ import annotations

from collections.abc import Sequence

from oop_engine.core.change import Change
from oop_engine.core.operator import Message
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Linear
from oop_engine.core.schema import Schema
from oop_engine.testing.driver import Driver
from oop_engine.testing.trial import Trial

__all__ = ["without_unread"]


def without_unread(trial: Trial, names: Sequence[frozenset[str]]) -> Driver | None:
    """Run the stream of a trial with the columns that the operator reads, where later operators read ``names``.

    Returns None if it reads all columns: there is nothing to drop.
    """
    case = trial.case
    read = case.operator.reads(case.inputs, tuple(names))
    narrow = [
        schema.select(
            [name for name in schema.names if name in columns | {schema.progressing, schema.change}]
        )
        for schema, columns in zip(case.inputs, read, strict=True)
    ]
    if narrow == [*case.inputs]:
        return None
    messages = [(port, left) for port, message in trial.messages for left in _narrowed(message, narrow[port])]
    return Driver(case.operator, *narrow).run(messages)


def _narrowed(message: Message, schema: Schema) -> list[Message]:
    """Return a message with the columns of ``schema`` alone; of punctuation on others nothing is left."""
    if isinstance(message, Page):
        return [message.with_batch(schema, message.batch.select(schema.names))]
    attributes = () if isinstance(message, Linear | Change) else message.attributes
    return [message] if schema.has(attributes) else []
