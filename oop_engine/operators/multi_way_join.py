"""MultiJoin: a window join of several streams in one operator, without intermediate results.

A chain of joins (``multi_join``) makes each result of its first join before it is known whether the second one has
anything for it.  Here a tuple first finds the anchor tuples that it can be with, and these look for their
tuples in all other streams, in the one with the fewest matches first, before anything is joined.

    Pass       each combination of an anchor tuple with one tuple of each other stream, as soon as the last has come.
    Keep       an anchor tuple while the bound of any other input <= ts + its after; a tuple of input i while
               ts + its before >= the least anchor time to come or kept for the others:
               min(b0, min over j != i of (bj - after_j)).  The bounds are those of the tuple's own key where
               group-wise punctuation on key columns is ahead.  Null keys match nothing and are not kept.
    Propagate  min(b0, min over i of (bi - after_i)): linear, and group-wise for each key; watermarks likewise.
               Joint punctuation is dropped.
    Cost       O(log n) a tuple and anchor tuple that it finds, for each stream that is asked; O(1) a result, O(1) a
               tuple purged; a group-wise punctuation O(its groups), on some of the key columns O(tuples kept).
               Order needed: none.
    Source     probing the stream with the fewest matches first: Viglas, Naughton, Burger, VLDB 2003 (MJoin); bounds
               as in ``OAJoin``, of several inputs: this engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.groups.zeros import with_unsigned_zeros, zeros_in
from oop_engine.core.operator import Emission, Operator, State
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Punctuation, Wants
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.joining.bands import AsOf, Bands
from oop_engine.operators.joining.star import StarState
from oop_engine.operators.joining.terms import JoinTerms, key_columns

__all__ = ["MultiJoin"]

_WHAT = "MultiJoin"


@checked_arguments
class MultiJoin(Operator):
    """Join the tuples of ``anchor`` with those of each stream of ``bands`` that have equal ``keys``.

    ``anchor``: the name of the first input; ``bands``: of each other input, by name, which of its times go with an
    anchor tuple's.  ``keys``: tuples of columns of one Arrow type, one of each input in that order; none: bands
    alone.  Null equals nothing; NaN equals NaN.  Results have the anchor's columns, then those of the others, with
    ``_`` and the input's name behind those that are taken; the anchor's time stays the progressing attribute.
    ``counts()`` tells how many matches each input has had a probe, which is the order in which they are asked.
    The same as a chain of ``OAJoin``s (``multi_join``), which also knows other kinds, residuals, and keys of their own.
    Raises ``GraphError`` for fewer than two others, if columns, types or units do not fit, and for an ``AsOf``.

    >>> import pyarrow as pa
    >>> from oop_engine.operators import Band
    >>> s = Schema({"ts": pa.int64(), "k": pa.string()}, "ts", "s")
    >>> bands = {"b": Band(before=0, after="2 s"), "c": Band(before=5, after=5)}
    >>> join = MultiJoin("a", bands, keys=[("k", "k", "k")]).opened(s, s, s)
    >>> list(join.on_page(0, Page.of(s, {"ts": [7], "k": ["x"]})))
    []
    >>> list(join.on_page(2, Page.of(s, {"ts": [3], "k": ["x"]})))
    []
    >>> [(_, page)] = join.on_page(1, Page.of(s, {"ts": [8], "k": ["x"]}))
    >>> page.to_pylist()
    [{'ts': 7, 'k': 'x', 'ts_b': 8, 'k_b': 'x', 'ts_c': 3, 'k_c': 'x'}]
    """

    waits = "every tuple is kept"

    def __init__(
        self, anchor: str, bands: Mapping[str, Bands], keys: Sequence[str | Sequence[str]] | str
    ) -> None:
        self.inputs = (anchor, *bands)
        self.bands, self.keys = dict(bands), key_columns(keys, self.inputs, _WHAT)
        if len(set(self.inputs)) < 3 or anchor in bands:
            msg = f"{_WHAT}: there must be two or more streams beside {anchor!r}; got {list(bands)}: use OAJoin for one"
            raise GraphError(msg)
        if as_of := [name for name, band in bands.items() if isinstance(band, AsOf)]:
            msg = (
                f"{_WHAT}: an AsOf band has to wait for the latest tuple; got one for {as_of}: use multi_join"
            )
            raise GraphError(msg)
        self._terms = [
            JoinTerms(
                f"{_WHAT}: {name}", tuple((key[0], key[at]) for key in self.keys), band, None, f"_{name}"
            )
            for at, (name, band) in enumerate(bands.items(), start=1)
        ]

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        return (self._joined(inputs)[-1],)

    def _joined(self, inputs: tuple[Schema, ...]) -> list[Schema]:
        """Return the columns of the anchor, of it and the next one, and so on."""
        joined = [inputs[0]]
        for terms, schema in zip(self._terms, inputs[1:], strict=True):
            joined.append(terms.output_schema(joined[-1], schema))
        return joined

    def partition_keys(self, inputs: tuple[Schema, ...]) -> list[tuple[str, ...]]:
        return list(self.keys)

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        joined, lineage = self._joined(inputs), list[str | None]()
        own: str | None = column
        for at in range(len(self._terms), 0, -1):
            pair = (
                (None, None) if own is None else self._terms[at - 1].lineage(own, joined[at - 1], inputs[at])
            )
            own, other = pair
            lineage.insert(0, other)
        return (own, *lineage)

    def wants(self, inputs: tuple[Schema, ...], downstream: Wants) -> tuple[Wants, ...]:
        groups = [frozenset(key[port] for key in self.keys) for port in range(len(inputs))]
        return tuple(Wants(1, group, watermarks=downstream.watermarks) for group in groups)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        joined, needed, left = self._joined(inputs), list[frozenset[str]](), downstream[0]
        for at in range(len(self._terms), 0, -1):
            left, right = self._terms[at - 1].reads(left, joined[at - 1], inputs[at])
            needed.insert(0, right)
        return (left, *needed)

    def open(self) -> None:
        keys = [[key[port] for key in self.keys] for port in range(len(self.inputs))]
        rules = [terms.band.fitted(self.schemas_in[0], terms.operator) for terms in self._terms]
        self._held = StarState(self.schemas_in, keys, rules)
        self._zeros = list(map(zeros_in, self.schemas_in, keys))

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        [schema], page = self.schemas_out, with_unsigned_zeros(page, self._zeros[port])
        for batches in self._held.arrive(port, self._held.bounds.timely(port, page)):
            columns = [column for batch in batches for column in batch.columns]
            joined = pa.RecordBatch.from_arrays(columns, schema=schema.fields)
            if joined.num_rows:
                yield 0, Page(schema, joined)

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        for grown in self._held.advance(port, punctuation):
            yield 0, grown

    def state(self) -> State:
        return self._held.state()

    def counts(self) -> dict[str, int]:
        counts = {"behind": self._held.bounds.behind}
        for port, name in enumerate(self.inputs[1:], start=1):
            counts |= {f"probes_{name}": self._held.probes[port], f"matches_{name}": self._held.matches[port]}
        return counts

    def save(self) -> dict[str, Any]:
        return self._held.save()

    def load(self, state: Saved) -> None:
        self._held.load(state)

    def describe(self) -> str:
        equal = ", ".join(" = ".join(dict.fromkeys(key)) for key in self.keys)
        bands = ", ".join(f"{name}: {band}" for name, band in self.bands.items())
        return f"{_WHAT}({self.inputs[0]}; {bands}; on {equal or 'no key'})"

    def explain(self, inputs: tuple[Schema, ...]) -> str:
        others = ", ".join(self.inputs[1:])
        return (
            f"a tuple finds its tuples of {self.inputs[0]}, and these look into {others}: the one with the fewest "
            "matches a probe so far first (its counts), and no further where there is none; nothing is kept joined"
        )
