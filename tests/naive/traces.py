"""Disorder from its definition, tuple by tuple."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence

__all__ = ["larger_before", "lateness", "own_lateness", "parts"]


def lateness(times: Sequence[int]) -> list[int]:
    """How far each value is behind the largest before it, or 0."""
    return [max(0, *(before - t for before in times[:i])) if i else 0 for i, t in enumerate(times)]


def own_lateness(times: Sequence[int], groups: Sequence[Hashable]) -> list[int]:
    """The same within the group of each."""
    own = [[t for t, g in zip(times[:i], groups, strict=False) if g == groups[i]] for i in range(len(times))]
    return [max([0, *(before - t for before in others)]) for t, others in zip(times, own, strict=True)]


def larger_before(times: Sequence[int]) -> list[int]:
    """How many larger values come before each."""
    return [sum(before > t for before in times[:i]) for i, t in enumerate(times)]


def parts(times: Sequence[int]) -> list[list[int]]:
    """The shortest runs of which none has a later value below its largest."""
    cuts = [i for i in range(1, len(times)) if max(times[:i]) <= min(times[i:])]
    edges = [0, *cuts, len(times)]
    return [list(times[a:b]) for a, b in itertools.pairwise(edges) if a < b]
