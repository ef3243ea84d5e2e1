"""Names: those that are asked for are checked before anything is measured."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Collection, Iterable

from oop_engine.core.close_names import did_you_mean

__all__ = ["known_names"]


def known_names(parser: ArgumentParser, kind: str, asked: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the names that are meant: W6 is all that begin with ``W6-``.  Ends the program where there is none."""
    meant: list[str] = []
    for name in asked:
        some = [each for each in known if each == name or each.startswith(f"{name}-")]
        if not some:
            hint = did_you_mean(name, known) or f": use one of {', '.join(known)}"
            parser.error(f"unknown {kind} {name!r}{hint}")
        meant += some[:1] if some[0] == name else some
    return list(dict.fromkeys(meant))
