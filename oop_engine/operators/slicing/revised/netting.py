"""Netting: window aggregation of a revision stream, of the rows that are left when they are final.

A row that may be taken back is in no partial aggregate yet: sums could be subtracted from, a maximum could not.  So
rows wait, each distinct one once with a count, until a bound has passed them, as windows that need the order of time
let them wait; then they are folded, and the windows that the bound completes leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oop_engine.core.operator import Emission, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import GroupWise, Linear, Punctuation
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.revisions.net_rows import NetRows
from oop_engine.operators.slicing.closing import Closing
from oop_engine.operators.slicing.output import Output
from oop_engine.operators.slicing.store import Store
from oop_engine.operators.values.columns import Integers

__all__ = ["Netting"]


class Netting(Closing):
    """Open windows of the groups of ``by``, of a stream of ``schema``; of a plain one nothing waits."""

    def __init__(self, output: Output, schema: Schema, by: tuple[str, ...], stores: Sequence[Store]) -> None:
        super().__init__(output, schema.plain(), by, stores)
        self._net = None if schema.change is None else NetRows(schema)

    def counts(self) -> dict[str, int]:
        if self._net is None:
            return super().counts()
        return {"behind": self._net.behind.count}

    def state(self) -> State:
        return super().state() if self._net is None else super().state() + self._net.state()

    def add(self, page: Page, times: Integers) -> None:
        if self._net is None:
            super().add(page, times)
        else:
            self._net.add(page)
            self._net.tidy()

    def take(self, punctuation: Punctuation) -> Iterator[Emission]:
        """Fold the rows that are final by now, and put out the windows that are complete; joint bounds end here."""
        if self._net is None:
            return super().take(punctuation)
        if not isinstance(punctuation, Linear | GroupWise):
            return iter(())
        if self._net.knows(punctuation) and (page := self._net.take(punctuation)) is not None:
            super().add(page, page.times)
        return super().take(punctuation)

    def save(self) -> dict[str, Any]:
        return super().save() | ({} if self._net is None else {"net": self._net.save()})

    def load(self, saved: Saved) -> None:
        super().load(saved)
        if self._net is not None:
            self._net.load(saved.part("net"))
