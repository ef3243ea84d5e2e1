"""Retries: mended dead letters, fed into the graph of a service as if their sources had given them now.

Those of a sink, whose server refused a row, go to that sink alone, with the results of the epoch that is written now.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from oop_engine.connectors.sink import LiveSink
from oop_engine.service.checkpoint_manifest import CheckpointManifest
from oop_engine.service.gate import Gate
from oop_engine.service.inlet import Inlet
from oop_engine.service.letters.letter_folder import LetterFolder, Retry, sink_of_letter
from oop_engine.service.outlets import Outlets
from oop_engine.system.on_thread import on_thread

__all__ = ["Retries", "retries_of"]

_LOG = logging.getLogger("oop_engine")
_EVERY_S = 1.0
_NAME = "dead letters"
"""Of the position, beside those of sources: their names have no space."""


class Retries:
    """Feeds the orders in ``folder`` to ``inlets`` and ``outlets``.

    ``position``: the number of the last order that went in.  It is in the checkpoint, with the states that have the
    rows: so each letter is fed once, whenever the process dies.  An order goes in as a whole, between two checkpoints.
    """

    def __init__(
        self, folder: LetterFolder, inlets: Mapping[str, Inlet], outlets: Outlets, gate: Gate
    ) -> None:
        self._folder, self._inlets, self._outlets, self._gate = folder, inlets, outlets, gate
        self.position = 0
        self._waits = 0

    def noted(self, manifest: CheckpointManifest) -> CheckpointManifest:
        """Return a manifest that has the position, too."""
        return replace(manifest, positions={**manifest.positions, _NAME: self.position})

    def restore(self, manifest: CheckpointManifest) -> None:
        """Go on from the position in a manifest."""
        self.position = int(manifest.positions.get(_NAME) or 0)

    async def feed(self) -> None:
        """Feed the orders that are there and have not been fed."""
        for number in await on_thread(self._folder.orders, self.position):
            letters = await on_thread(self._folder.order, number)
            if over := sorted({each.source for each in letters if self._over(each.source)}):
                if self._waits != number:
                    self._waits = number
                    words = "dead letters: order %d waits, for %s has ended, or is not in the graph"
                    _LOG.warning(words, number, ", ".join(map(_words, over)))
                return
            async with self._gate.inside():
                for each in letters:
                    await self._feed(each)
                self.position = number
            _LOG.info("dead letters: %d were fed again (order %d)", len(letters), number)

    async def _feed(self, letter: Retry) -> None:
        if (sink := sink_of_letter(letter.source)) is not None:
            await self._outlets.retry(sink, letter.record, letter.letter)
        else:
            await self._inlets[letter.source].retry(letter)

    async def follow(self) -> None:
        """Feed orders as they come, for ever."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.feed()

    def _over(self, source: str) -> bool:
        if (sink := sink_of_letter(source)) is not None:
            return sink not in self._outlets.kinds
        return source not in self._inlets or self._inlets[source].ended


def _words(source: str) -> str:
    sink = sink_of_letter(source)
    return f"source {source!r}" if sink is None else f"sink {sink!r}"


def retries_of(
    dead_letters: LiveSink | None, inlets: Mapping[str, Inlet], outlets: Outlets, gate: Gate
) -> Retries | None:
    """Return the retries of a service; None: its dead letters are not in a folder of this machine."""
    folder = getattr(dead_letters, "folder", None)
    return Retries(LetterFolder(folder), inlets, outlets, gate) if isinstance(folder, Path) else None
