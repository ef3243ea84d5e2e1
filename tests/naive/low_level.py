"""A table of fixed size that counts tuples, one by one, by the words of its definition (thesis 8.3.3, fig. 8-6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Table"]

Key = tuple[Any, int]  # a group and the start of its window


class Table:
    """Counts of tuples by group and tumbling window of ``length``; ``out`` are the entries that left, in order.

    A group goes to ``home(group)``, or with ``probe`` to the place behind that.
    """

    def __init__(
        self, slots: int, length: int, home: Callable[[Any], int],
        *, within: int = 0, every: int = 0, ordered: bool = False, probe: bool = False,
    ) -> None:  # fmt: skip
        self.entries: list[tuple[Key, int] | None] = [None] * slots
        self.length, self.home, self.within, self.every = length, home, within, every
        self.ordered, self.probe = ordered, probe
        self.closed: float = float("-inf")  # windows that start before this are old
        self.came = self.position = 0
        self.out: list[tuple[Key, int]] = []

    def tuple_(self, group: Any, time: int) -> None:
        key = (group, time // self.length * self.length)
        if self.ordered and key[1] > self.closed:
            self.leave_all_old()
            self.closed, self.position = key[1], 0
        self.came += 1
        if self.every and self.came >= self.every:
            self.came = 0
            self.leave_next_old()
        at = self.place(key)
        entry = self.entries[at]
        if entry is not None and entry[0] == key:
            self.entries[at] = key, entry[1] + 1
            return
        if entry is not None:
            if self.ordered and not self.is_old(at):
                self.leave_all_old()
            self.leave(at)
        self.entries[at] = key, 1

    def place(self, key: Key) -> int:
        home = self.home(key[0])
        looked_at = [home, (home + 1) % len(self.entries)] if self.probe else [home]
        tests: list[Callable[[int], bool]] = [
            lambda at: (entry := self.entries[at]) is not None and entry[0] == key,
            lambda at: self.entries[at] is None,
            self.is_old,
        ]
        return next((at for test in tests for at in looked_at if test(at)), home)

    def punctuation(self, below: float) -> None:
        for at in sorted(range(len(self.entries)), key=self.window_of) if self.ordered else self.everywhere():
            if self.window_of(at) + self.length + self.within * self.length <= below:
                self.leave(at)
        if not self.ordered and below > self.closed:
            self.closed = below // self.length * self.length

    def everywhere(self) -> range:
        return range(len(self.entries))

    def window_of(self, at: int) -> float:
        entry = self.entries[at]
        return float("inf") if entry is None else entry[0][1]

    def is_old(self, at: int) -> bool:
        return self.window_of(at) < self.closed

    def leave(self, at: int) -> None:
        entry = self.entries[at]
        if entry is not None:
            self.out.append(entry)
            self.entries[at] = None

    def leave_next_old(self) -> None:
        slots = len(self.entries)
        for at in [(self.position + i) % slots for i in range(slots)]:
            if self.is_old(at):
                self.leave(at)
                self.position = at + 1
                return

    def leave_all_old(self) -> None:
        for _ in self.entries:
            self.leave_next_old()
