"""A join of several streams, as a chain of ``OAJoin``s or as one ``MultiJoin``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from oop_engine.core.errors import GraphError
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.operators.joining.bands import Bands
from oop_engine.operators.multi_way_join import MultiJoin
from oop_engine.operators.oa_join import OAJoin

__all__ = ["multi_join"]

Keys = Sequence[tuple[str, str]]
T = TypeVar("T")


def multi_join(
    graph: Graph,
    name: str,
    anchor: Stream | str,
    others: Mapping[str, Stream | str],
    keys: Keys | Mapping[str, Keys],
    bands: Bands | Mapping[str, Bands],
    how: str | Mapping[str, str] = "inner",
    *,
    at_once: bool = False,
) -> Stream:
    """Add the join of ``anchor`` with each of ``others`` to a graph, and return its output.

    ``keys`` (pairs of an anchor's and another one's column), ``bands`` and ``how``: one for all, or
    one for each name in ``others``.  Each band is of the anchor's time, which stays the progressing
    attribute, so no tuple is held longer than by its own join, and intermediate results only where a
    later one has its partners still to come.  Columns of a stream whose names are taken get its name
    behind them (``v_prices``).  Put the join that lets the fewest through first.
    ``at_once``: one ``MultiJoin`` instead, which finds that order by itself and makes no intermediate results; for
    inner joins with two or more others that go by the same columns of the anchor.
    Raises ``GraphError`` if there are no others, a name has no keys or band, or a join does not fit.

    >>> import pyarrow as pa
    >>> from oop_engine import Schema
    >>> from oop_engine.operators import AsOf, Band
    >>> graph = Graph("seen")
    >>> trades, prices, alerts = (
    ...     graph.source(n, Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s"))
    ...     for n in ("trades", "prices", "alerts")
    ... )
    >>> bands = {"prices": AsOf(), "alerts": Band(5, 5)}
    >>> how = {"prices": "left", "alerts": "semi"}
    >>> others = {"alerts": alerts, "prices": prices}
    >>> seen = multi_join(graph, "seen", trades, others, [("k", "k")], bands, how)
    >>> graph.sink("out", seen)
    >>> graph.plan().schema(seen).names
    ['ts', 'k', 'ts_prices', 'k_prices']
    """
    if not others:
        msg = f"multi_join {name!r}: there must be streams to join with; got none"
        raise GraphError(msg)
    place_of = f"multi_join {name!r}"
    keys_of = _of_each(keys, others, f"{place_of}: keys")
    band_of: Mapping[str, Bands] = _of_each(bands, others, f"{place_of}: bands")
    how_of = _of_each(how, others, f"{place_of}: how")
    if at_once:
        together = _together(place_of, keys_of, how_of)
        join = MultiJoin("anchor", {other: band_of[other] for other in others}, together)
        return graph.add(name, join, anchor, *others.values())
    joined: Stream | str = anchor
    for place, (other, stream) in enumerate(others.items(), start=1):
        pair = OAJoin(keys_of[other], band_of[other], suffix=f"_{other}", how=how_of[other])
        joined = graph.add(name if place == len(others) else f"{name}_{other}", pair, joined, stream)
    assert isinstance(joined, Stream)
    return joined


def _together(place: str, keys_of: Mapping[str, Keys], how_of: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return keys of all streams, from those of each other one with the anchor."""
    by_anchor = [dict(keys) for keys in keys_of.values()]
    if any(set(keys) != set(by_anchor[0]) for keys in by_anchor) or set(how_of.values()) != {"inner"}:
        msg = (
            f"{place}: at_once is for inner joins by the same columns of the anchor; got keys {dict(keys_of)!r}, "
            f"how {dict(how_of)!r}: leave at_once out"
        )
        raise GraphError(msg)
    return [(column, *(keys[column] for keys in by_anchor)) for column in by_anchor[0]]


def _of_each(given: T | Mapping[str, T], names: Iterable[str], place: str) -> Mapping[str, T]:
    """Return the value of each name, where one may be given for all."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    if set(given) != set(names):
        msg = f"{place} must have one for each of {sorted(names)}; got {sorted(given)}"
        raise GraphError(msg)
    return given
