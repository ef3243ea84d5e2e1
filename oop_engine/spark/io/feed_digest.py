"""The digest of a feed: a checkpoint keeps it of the messages that were spooled, to compare those of a restart.

It is of rows, arrivals and punctuation in their order; where pages end makes no difference.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np

from oop_engine.core.change import Change
from oop_engine.core.operator import Message
from oop_engine.core.page import Page, concat
from oop_engine.core.schema import Schema
from oop_engine.spark.io.page_bytes import page_bytes
from oop_engine.system.knobs import knob
from oop_engine.traces.formats.msgpack_frames import frame_of

__all__ = ["FeedDigest"]

_ROWS = knob(__name__, "_ROWS", 1 << 13)  # of a piece


@dataclass
class FeedDigest:
    """The digest of the messages of one feed; rows are hashed in pieces of one size."""

    schema: Schema
    _hash: Any = field(default_factory=hashlib.sha256)
    _waiting: list[Page] = field(default_factory=list)
    _rows: int = 0

    def add(self, message: Message | Change) -> None:
        """Take the next message; O(its bytes)."""
        if isinstance(message, Page):
            self._waiting.append(message)
            self._rows += len(message)
            if self._rows >= _ROWS:
                self._whole_pieces()
            return
        self._rest()
        plain = ["change", message.frame()] if isinstance(message, Change) else frame_of(message)
        self._hash.update(msgpack.packb(plain, default=repr))  # windows of a change are values

    def hexdigest(self) -> str:
        """Return the digest of all messages so far."""
        self._rest()
        return str(self._hash.hexdigest())

    def _whole_pieces(self) -> None:
        """Hash as many whole pieces as there are; keep the rows behind them."""
        together = concat(self.schema, self._waiting)
        whole = self._rows // _ROWS * _ROWS
        for start in range(0, whole, _ROWS):
            self._piece(together.slice(start, start + _ROWS))
        self._rows -= whole
        self._waiting = [together.slice(whole, len(together)).copied()] if self._rows else []

    def _rest(self) -> None:
        if self._rows:
            self._piece(concat(self.schema, self._waiting))
        self._waiting, self._rows = [], 0

    def _piece(self, page: Page) -> None:
        self._hash.update(page_bytes(page.copied()))
        self._hash.update(b"" if page.arrival is None else np.ascontiguousarray(page.arrival).tobytes())
