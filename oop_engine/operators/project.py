"""Project: some of the columns, under other names if wanted, and perhaps other progress.

    Pass       every tuple with the columns asked for, at once; columns that only keep or
               change their name are not copied.
    Keep       one bound, where another attribute is made the progressing one.
    Propagate  linear      every one.
               group-wise  with the new names; dropped if an attribute of it is dropped,
                           for without it the groups cannot be distinguished.
               joint       likewise; and watermarks, which end where another attribute makes progress.
               Where Q takes the place of P as the progressing attribute: a joint punctuation
               of Q alone becomes linear, a linear one a joint one of P (if P is kept);
               group-wise ones are about P and dropped, but for groups that have ended.
    Cost       O(computed columns x rows) a page; O(groups) a punctuation, without a copy.

Source: J. Li, "Window Queries over Data Streams" (2008), ch. 4; 7.2 for punctuation about
the second timestamp of a join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Joint, Linear, Punctuation, Watermark
from oop_engine.core.saved import Saved
from oop_engine.core.schema import Schema
from oop_engine.operators.values.expressions import Expression, columns_of, evaluate, text_of, types_of

__all__ = ["Project"]


@checked_arguments
class Project(Operator):
    """Keeps ``columns``: a list of names, or a mapping from new names to old or expressions.

    ``progressing`` names the output column that makes progress; None: the one that does so
    in the input.  It must be an integer or timestamp column of the input, not a computed
    one, for punctuation is about it.  An integer keeps the unit of the input's attribute.
    Raises ``GraphError`` for no columns or one named twice, and when the graph is built for unknown ones,
    expressions that do not fit, or a progressing attribute that is dropped.

    >>> schema = Schema({"ts": pa.int64(), "src": pa.string(), "len": pa.int64()}, "ts", "s")
    >>> narrow = Project({"time": "ts", "host": "src"}).opened(schema)
    >>> narrow.schemas_out[0].progressing
    'time'
    >>> page = Page.of(schema, {"ts": [1], "src": ["a"], "len": [40]})
    >>> [part.to_pylist() for _, part in narrow.on_page(0, page)]
    [[{'time': 1, 'host': 'a'}]]
    """

    revisions = "passes"

    def __init__(
        self, columns: Sequence[str] | Mapping[str, Expression], progressing: str | None = None
    ) -> None:
        if isinstance(columns, str):
            columns = (columns,)
        if (
            not isinstance(columns, Mapping | tuple | list)
            or not columns
            or len(set(columns)) != len(columns)
        ):
            msg = f"Project: columns must be different names, or a mapping of new names; got {columns!r}"
            raise GraphError(msg)
        self.columns: dict[str, Expression] = (
            dict(columns) if isinstance(columns, Mapping) else {name: name for name in columns}
        )
        self.progressing = progressing
        self.distributes = progressing is None  # else it keeps a bound

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        [schema] = inputs
        columns = self._columns(schema)
        kinds = types_of("Project", list(columns.values()), schema)
        fields = [
            schema.fields.field(e).with_name(name) if isinstance(e, str) else pa.field(name, kind)
            for (name, e), kind in zip(columns.items(), kinds, strict=True)
        ]
        progressing = self._progressing(schema)
        is_time = pa.types.is_timestamp(schema.type_of(str(self.columns[progressing])))
        change = next(
            (name for name, e in columns.items() if isinstance(e, str) and e == schema.change), None
        )
        return (Schema(pa.schema(fields), progressing, "" if is_time else schema.unit, change),)

    def _columns(self, schema: Schema) -> dict[str, Expression]:
        """Return the columns; that of changes stays by itself."""
        named = [e for e in self.columns.values() if isinstance(e, str)]
        has_change = schema.change is None or schema.change in named
        return self.columns if has_change else {**self.columns, str(schema.change): str(schema.change)}

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        source = self._columns(inputs[0])[column]
        return (source if isinstance(source, str) else None,)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        return (columns_of(self.columns.values(), inputs[0]),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return self.columns[self._progressing(inputs[0])] == inputs[0].progressing

    def open(self) -> None:
        [schema], [out] = self.schemas_in, self.schemas_out
        self._types = out.fields.types
        self._expressions = list(self._columns(schema).values())
        self._named = all(isinstance(e, str) for e in self._expressions)
        self._narrows = self._named and self._expressions == out.names
        self._renamed = self._new_names()
        self._moved = self.columns[out.progressing] != schema.progressing
        self._linear = NEVER  # the bound of the attribute that has become the progressing one

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        [schema] = self.schemas_out
        if self._narrows and isinstance(page.columns, pa.RecordBatch):
            yield 0, page.with_batch(schema, page.columns.select(self._expressions))
            return
        if self._named:
            arrays = [page.columns.column(name) for name in self._expressions]
        else:
            arrays = evaluate("Project", self._expressions, self._types, page.batch)
        yield 0, page.with_batch(schema, pa.RecordBatch.from_arrays(arrays, schema=schema.fields))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        passed_on = self._of_other(punctuation) if self._moved else punctuation
        if passed_on is not None and (renamed := self._rename(passed_on)) is not None:
            yield 0, renamed

    def save(self) -> dict[str, Any]:
        return {"linear": self._linear}

    def load(self, state: Saved) -> None:
        self._linear = state.integer("linear")

    def describe(self) -> str:
        names = (
            name if isinstance(e, str) and e == name else f"{name} = {text_of(e)}"
            for name, e in self.columns.items()
        )
        return f"Project {', '.join(names)}{f' by {self.progressing}' if self.progressing else ''}"

    def _progressing(self, schema: Schema) -> str:
        """Return the output column that makes progress."""
        if self.progressing is None:
            name = next(
                (n for n, e in self.columns.items() if isinstance(e, str) and e == schema.progressing), None
            )
            if name is None:
                msg = f"Project: the progressing attribute {schema.progressing!r} must be kept; got {[*self.columns]}"
                raise GraphError(msg)
            return name
        if not isinstance(self.columns.get(self.progressing), str):
            msg = f"Project: progressing={self.progressing!r} must be one of its columns, and a column of its input"
            raise GraphError(msg)
        return self.progressing

    def _new_names(self) -> dict[str, str]:
        """Return the output name of each input column that is kept (its first, if several)."""
        plain = [(e, name) for name, e in self.columns.items() if isinstance(e, str)]
        return dict(reversed(plain))

    def _rename(self, punctuation: Punctuation) -> Punctuation | None:
        if isinstance(punctuation, Linear):
            return punctuation
        if not self._renamed.keys() >= set(punctuation.attributes):
            return None
        names = [self._renamed[n] for n in punctuation.attributes]
        if isinstance(punctuation, GroupWise):
            return GroupWise(punctuation.groups.rename_columns(names), punctuation.below)
        if isinstance(punctuation, Watermark):
            return self._soft(punctuation)
        return Joint(tuple(sorted(zip(names, (below for _, below in punctuation.bounds), strict=True))))

    def _soft(self, watermark: Watermark) -> Watermark:
        renamed = self._rename(watermark.of)
        assert isinstance(renamed, Linear | GroupWise)
        return Watermark(renamed)

    def _of_other(self, punctuation: Punctuation) -> Punctuation | None:
        """Return a punctuation for the stream that makes progress by another attribute; None: it has none."""
        source = self.columns[self.schemas_out[0].progressing]
        match punctuation:
            case Linear(below):
                old = Joint(((self.schemas_in[0].progressing, below),))
                return self._grown(below) if below == FOREVER else old
            case Joint(((name, below),)) if name == source:
                return self._grown(below)
            case GroupWise():
                ended = punctuation.filter(punctuation.below == FOREVER)
                return ended if len(ended) else None
            case Watermark():
                return None  # it is about the other attribute
        return punctuation

    def _grown(self, below: int) -> Linear | None:
        if below <= self._linear:
            return None
        self._linear = below
        return Linear(below)
