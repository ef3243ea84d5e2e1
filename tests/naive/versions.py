"""Versions of results by definition: all windows are computed anew after each message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tests.naive.revisions import Row
from tests.naive.triggers import Fires, Look, Tuple, Window, after_count

FOREVER = 2**63 - 1


def grid(range_: int, slide: int) -> Callable[[list[int]], list[Window]]:
    """Return which windows there are of some times: those of a grid that have one."""

    def windows(times: list[int]) -> list[Window]:
        starts = {
            s
            for t in times
            for s in range((t - range_) // slide * slide, t + 1, slide)
            if s <= t < s + range_
        }
        return [(start, start + range_) for start in sorted(starts)]

    return windows


def sessions(gap: int) -> Callable[[list[int]], list[Window]]:
    """Return the sessions of some times."""

    def windows(times: list[int]) -> list[Window]:
        found: list[Window] = []
        for time in sorted(times):
            if found and time <= found[-1][1]:
                found[-1] = found[-1][0], max(found[-1][1], time + gap)
            else:
                found.append((time, time + gap))
        return found

    return windows


class NaiveVersions:
    """Counts ``n``, sums ``s`` or maxima ``m`` of ``v`` in windows, with versions when ``early`` and ``late`` fire.

    A trigger is a function of ``triggers.py``, or a number of tuples; None: never.  ``info``: version and timing, too.
    """

    def __init__(
        self, windows: Callable[[list[int]], list[Window]], early: Fires | int | None, on_time: bool,
        late: Fires | int | None, *, strict: bool, info: bool = False,
        names: Sequence[str] = ("n", "s"), clocked: bool = True,
    ) -> None:  # fmt: skip
        self.windows, self.on_time, self.strict = windows, on_time, strict
        self.info, self.names, self.clocked = info, names, clocked
        self.triggers = {
            timing: after_count(one) if isinstance(one, int) else one
            for timing, one in (("early", early), ("late", late))
        }
        self.tuples: list[Tuple] = []
        self.firings: dict[Window, list[Look]] = {}
        self.out: dict[Window, Row] = {}
        self.promised = self.expected = -(2**63)
        self.clock = 0

    def _passed(self, window: Window, bound: int) -> bool:
        return bound == FOREVER or (window[1] < bound if self.strict else window[1] <= bound)

    def page(self, tuples: list[tuple[int, int]]) -> list[Row]:
        new = [Tuple(len(self.tuples) + i, *one, self.clock) for i, one in enumerate(tuples)]
        self.tuples += new
        return self._ask(lambda inside: not inside.isdisjoint(new), requested=False)

    def tick(self, clock: int) -> list[Row]:
        """The arrival clock shows a time; if a trigger wants it, windows are asked that tuples wait in."""
        self.clock = clock
        return self._ask(None, requested=False) if self.clocked else []

    def request(self) -> list[Row]:
        return self._ask(lambda _: True, requested=True)

    def watermark(self, bound: int) -> list[Row]:
        before, self.expected = self.expected, max(self.expected, bound)
        passed = [w for w in self._open() if self._passed(w, self.expected) and not self._passed(w, before)]
        return [row for w in passed for row in self._put(self._look(w, "on_time"))] if self.on_time else []

    def promise(self, bound: int) -> list[Row]:
        windows = self._open()
        self.promised = max(self.promised, bound)
        self.expected = max(self.expected, bound)
        changes = []
        for window in windows:
            if self._passed(window, self.promised):
                changes += self._put(self._look(window, "final"))
                del self.firings[window], self.out[window]
        return changes

    def _ask(self, which: Callable[[frozenset[Tuple]], bool] | None, *, requested: bool) -> list[Row]:
        changes: list[Row] = []
        for window in self._open():
            timing = "late" if self._passed(window, self.expected) else "early"
            look, trigger = self._look(window, timing, requested), self.triggers[timing]
            before = self._before(window)
            waits = bool(look.inside.difference(*(one.inside for one in before)))
            asked = frozenset(at for at, one in enumerate(before) if one.timing == timing)
            if (which(look.inside) if which else waits) and trigger and trigger(look, before, asked):
                changes += self._put(look)
        return changes

    def _open(self) -> list[Window]:
        windows = self.windows([one.time for one in self.tuples])
        return [window for window in windows if not self._passed(window, self.promised)]

    def _among(self, some: Iterable[Window], window: Window) -> list[Window]:
        """What was a window and is now, or is a part of this one."""
        if not self.strict:
            return [window] if window in some else []
        return [one for one in some if window[0] <= one[0] and one[1] <= window[1]]

    def _before(self, window: Window) -> list[Look]:
        return [look for one in self._among(self.firings, window) for look in self.firings[one]]

    def _look(self, window: Window, timing: str, requested: bool = False) -> Look:
        inside = frozenset(one for one in self.tuples if window[0] <= one.time < window[1])
        values = [one.v for one in inside]
        all_ = {"n": len(values), "s": sum(values), "m": max(values)}
        results = dict(zip(("window_start", "window_end"), window, strict=True))
        results |= {name: all_[name] for name in self.names}
        return Look(timing, window, inside, results, self.expected, self.clock, requested)

    def _put(self, look: Look) -> list[Row]:
        window = look.window
        firings, out = [*self._before(window), look], self._among(self.out, window)
        for one in self._among(self.firings, window):
            del self.firings[one]
        self.firings[window] = firings
        held = [self.out[one] for one in out]
        if len(held) == 1 and held[0].items() >= look.results.items():
            return []
        for one in out:
            del self.out[one]
        number = max((one["version"] for one in held), default=-1) + 1
        self.out[window] = look.results | {"version": number, "timing": look.timing}
        changes = [one | {"change": -1} for one in held] + [self.out[window] | {"change": 1}]
        if self.info:
            return changes
        return [{k: v for k, v in one.items() if k not in {"version", "timing"}} for one in changes]
