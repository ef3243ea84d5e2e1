"""Taken up: whether the stream of NATS that takes a subject up is the one that has the results of earlier epochs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from oop_engine.core.errors import SnapshotError
from oop_engine.core.values.rfc3339 import rfc3339

__all__ = ["TakenUp"]

_LOG = logging.getLogger("oop_engine")


class TakenUp:
    """The stream that takes a subject up; ``place`` names the subject.

    ``known``: the name of the stream, and when it was made; None: it was not looked at yet.  Raises ``SnapshotError``
    where it is another one now, once: results that were published are gone, and a service that goes on must know.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self.known: list[str] | None = None
        self._last = 0

    def check(self, about: Any) -> None:
        """Take over the stream that there is; raise ``SnapshotError`` unless it has all that was published to it."""
        identity = [str(about.config.name), rfc3339(about.created) if about.created is not None else ""]
        before, self.known = self.known, identity
        last, self._last = self._last, min(self._last, int(about.state.last_seq))
        if before is not None and before != identity:
            self._last = 0
            msg = f"stream {before[0]!r} of {before[1]} was deleted, and {_words(identity)} takes it up now"
            raise self._lost(msg)
        if last > self._last:
            there = f"the last is {self._last:,}"
            msg = (
                f"message {last:,} of stream {identity[0]!r} is gone, {there}: it was restored from a backup"
            )
            raise self._lost(msg)

    def note(self, answer: Any) -> None:
        """Note the number of a message that was published."""
        if self.known is not None and str(answer.stream) == self.known[0]:
            self._last = max(self._last, int(answer.seq))

    def is_one(self, known: Sequence[Any], epoch: int) -> bool:
        """Return whether the stream is that of an earlier process, with a line if not; ``epoch``: the one to repeat."""
        if not known or list(known) == self.known:
            return True
        words = "%s: stream %r of %s was deleted since, %s takes it up now: results before epoch %d are gone"
        _LOG.warning(words, self._place, *known, _words(self.known or ["", ""]), epoch)
        return False

    def _lost(self, why: str) -> SnapshotError:
        return SnapshotError(
            f"{self._place}: lacks results that were committed: {why}: restart the service to go on without them"
        )


def _words(stream: Sequence[str]) -> str:
    return f"stream {stream[0]!r} of {stream[1]}"
