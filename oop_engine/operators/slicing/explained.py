"""The words of ``explain``: which stores are taken, and why."""

from __future__ import annotations

from collections.abc import Iterable

from oop_engine.core.schema import Schema
from oop_engine.operators.slicing.accumulators import accumulator, is_ragged
from oop_engine.operators.slicing.panes.shared_slices import Slicing
from oop_engine.operators.slicing.panes.slice_windows import assembly_words
from oop_engine.operators.slicing.strategy import Query, chosen, in_bins
from oop_engine.operators.windows import Definition, Gap, is_folded, is_gap, is_grid

__all__ = ["explained", "explained_versions", "retained"]

_NAMED = 6  # definitions that are all named


def explained(query: Query) -> str:
    """Return which stores are taken, and why."""
    words = [_sharing(slicing, query) for slicing in query.slicings]
    for number in query.alone:
        why = _why(query, number)
        words.append(f"{query.names[number]!r}: {why}" if query.share else why)
    return "; ".join([*words, *query.output.moments()])


def _why(query: Query, number: int) -> str:
    definition = query.output.definitions[number]
    if in_bins(query, definition):
        return "bins, as asked: two partial aggregates a tuple, each tuple added to all bins in its range; none is held"
    if is_folded(definition):
        return f"slices of {definition.words()}, folded in time order once a bound has passed; tuples above it are held"
    if is_gap(definition):
        return _runs(query, number, definition)
    return chosen(query, definition).why if is_grid(definition) else definition.words()


def _runs(query: Query, number: int, definition: Gap) -> str:
    gaps = query.gaps
    narrowest = next(iter(gaps), number)
    if narrowest not in gaps or definition == gaps[narrowest]:
        return f"runs: tuples at most {definition.gap} {query.schema.unit} apart, merged as they come"
    name = query.names[narrowest]
    return f"rows of the runs of {name!r} that are at most {definition.gap} {query.schema.unit} apart"


def _sharing(slicing: Slicing, query: Query) -> str:
    some = [repr(query.names[number]) for number in sorted(slicing.shape[3].tolist())]
    names = ", ".join(some) if len(some) <= _NAMED else f"{len(some)} definitions, {some[0]} to {some[-1]}"
    many = f"{slicing.fewest} to {slicing.longest}" if slicing.fewest < slicing.longest else slicing.longest
    parts = [accumulator(part) for part in query.parts]
    ways = assembly_words(slicing, parts, query.assembly, grouped=query.output.grouped)
    share = "shared by" if len(some) > 1 else "of"
    return f"{slicing.words(query.schema.unit)} {share} {names}: {many} a window, one ring, {ways}"


def explained_versions(query: Query, tuples: Schema) -> str:
    """Return how windows are kept and read."""
    if tuples.change is not None:
        return "rows that may be taken back wait for punctuation; versions are those of a copy that closes with them"
    ragged = is_ragged(query.parts)
    copied = [
        name
        for name, one in zip(query.names, query.output.definitions, strict=True)
        if not (is_gap(one) or (is_grid(one) and not one.landmark and not ragged))
    ]
    words = "panes, partial aggregates of windows, or runs of sessions: versions read them as they are"
    if not copied:
        return words
    return f"{', '.join(map(repr, copied))}: versions are those of a copy of the state that closes" + (
        f"; else {words}" if len(copied) < len(query.names) else ""
    )


def retained(definitions: Iterable[Definition], by: tuple[str, ...], *, empty: bool) -> str | None:
    """Return the state of a key that stays until it ends, and why; None: bounds of the stream free all."""
    found = [words for one in definitions if (words := one.retains)]
    if empty:
        found.append("the last window of each key: empty windows follow it if another row of the key comes")
    return "; ".join(dict.fromkeys(found)) if by and found else None
