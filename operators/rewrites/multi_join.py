"""A join of several streams as a chain of ``OAJoin``s."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from oop_engine.core.errors import GraphError
from oop_engine.core.graphs.graph import Graph, Stream
from oop_engine.operators.joining.bands import Bands
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
    kind: str | Mapping[str, str] = "inner",
) -> Stream:
    """Add the join of ``anchor`` with each of ``others`` to a graph, and return its output.

    ``keys`` (pairs of an anchor's and another one's column), ``bands`` and ``kind``: one for all, or
    one for each name in ``others``.  Each band is of the anchor's time, which stays the progressing
    attribute, so no tuple is held longer than by its own join, and intermediate results only where a
    later one has its partners still to come.  Columns of a stream whose names are taken get its name
    behind them (``v_prices``).  Put the join that lets the fewest through first.
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
    >>> kinds = {"prices": "left", "alerts": "semi"}
    >>> others = {"alerts": alerts, "prices": prices}
    >>> seen = multi_join(graph, "seen", trades, others, [("k", "k")], bands, kinds)
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
    kind_of = _of_each(kind, others, f"{place_of}: kind")
    joined: Stream | str = anchor
    for place, (other, stream) in enumerate(others.items(), start=1):
        join = OAJoin(keys_of[other], band_of[other], suffix=f"_{other}", kind=kind_of[other])
        joined = graph.add(name if place == len(others) else f"{name}_{other}", join, joined, stream)
    assert isinstance(joined, Stream)
    return joined


def _of_each(given: T | Mapping[str, T], names: Iterable[str], place: str) -> Mapping[str, T]:
    """Return the value of each name, where one may be given for all."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    if set(given) != set(names):
        msg = f"{place} must have one for each of {sorted(names)}; got {sorted(given)}"
        raise GraphError(msg)
    return given
