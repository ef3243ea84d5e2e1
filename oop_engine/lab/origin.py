"""Origin: by which versions, and over which data, a comparison was made, so that it can be made again."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from oop_engine.core.graphs.graph import Plan, Stream
from oop_engine.core.operator import Message, State
from oop_engine.core.page import Page
from oop_engine.runners.dispatch import Watch

__all__ = ["Fingerprint", "changed_figures", "versions"]

_PACKAGES = {"oop_engine": "oop-engine", "pyarrow": "pyarrow", "numpy": "numpy", "numba": "numba"}
_OF_THE_MACHINE = {"latency_p50_ms", "latency_p99_ms", "cpu_s", "tuples_per_s"}


def versions() -> dict[str, str]:
    """Return the versions of the packages that decide on traces, bytes and delays.

    >>> list(versions())
    ['python', 'oop_engine', 'pyarrow', 'numpy', 'numba']
    """
    by_package = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name, package in _PACKAGES.items():
        try:
            by_package[name] = version(package)
        except PackageNotFoundError:  # it runs from a checkout that is not installed
            by_package[name] = "unknown"
    return by_package


class Fingerprint:
    """A ``Watch`` that sums up all messages of the sources; ``inner`` gets the same calls.

    ``text`` is equal for equal data that was cut into equal pages.  O(bytes).
    """

    def __init__(self, plan: Plan, inner: Watch | None) -> None:
        self._inner = inner
        self._first: dict[Stream, str] = {}
        sources = {node.name for node in plan.of_kind("source")}
        for stream, node, _ in plan.edges():
            if stream.node in sources:
                self._first.setdefault(stream, node)
        self._sums = {stream: hashlib.blake2b(digest_size=8) for stream in self._first}

    def passed(self, stream: Stream, node: str, message: Message, now: int) -> None:
        """Take a message of a source, once for all that read it."""
        if self._first.get(stream) == node:
            content = message.batch.serialize() if isinstance(message, Page) else repr(message).encode()
            self._sums[stream].update(content)
            came = message.arrival if isinstance(message, Page) else None
            self._sums[stream].update(str(now).encode() if came is None else came.tobytes())
        if self._inner is not None:
            self._inner.passed(stream, node, message, now)

    def kept(self, now: int, state: State) -> None:
        """Pass a state on."""
        if self._inner is not None:
            self._inner.kept(now, state)

    @property
    def text(self) -> str:
        """The sums of all sources, sixteen letters."""
        whole = hashlib.blake2b(digest_size=8)
        for stream in sorted(self._sums, key=str):
            whole.update(f"{stream}={self._sums[stream].hexdigest()};".encode())
        return whole.hexdigest()


def changed_figures(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line for each figure of a report that a repetition has otherwise, without those of the machine.

    >>> run = {"order": "in", "variant": "a", "results": 3}
    >>> changed_figures({"runs": [run]}, {"runs": [run | {"results": 4}]})
    ['run 1 (in, a): results was 3, and is 4']
    """
    lines = [
        f"{name}: was {before[name]}, and is {now.get(name)}"
        for name in ("versions", "data")
        if name in before and before[name] != now.get(name)
    ]
    runs, again = before.get("runs", []), now.get("runs", [])
    if len(runs) != len(again):
        return [*lines, f"runs: {len(runs)} were made, and {len(again)} are"]
    for number, (old, new) in enumerate(zip(runs, again, strict=True), 1):
        place = f"run {number} ({new.get('order')}, {new.get('variant')})"
        lines += [
            f"{place}: {name} was {old[name]}, and is {new.get(name)}"
            for name in old
            if name not in _OF_THE_MACHINE and old[name] != new.get(name)
        ]
    claims = {claim["claim"]: claim["holds"] for claim in now.get("claims", [])}
    for claim in before.get("claims", []):
        if claim["claim"] in claims and claims[claim["claim"]] != claim["holds"]:
            lines.append(
                f"claim {claim['claim']!r}: held was {claim['holds']}, and is {claims[claim['claim']]}"
            )
    return lines
