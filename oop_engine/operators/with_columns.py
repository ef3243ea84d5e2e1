"""WithColumns: columns computed from the columns of the same tuple.

    Pass       every tuple, with its new columns, at once; the others are not copied.
    Keep       nothing.
    Propagate  linear      every one: the progressing attribute cannot be replaced.
               group-wise  unless one of its attributes is replaced; then it is dropped,
                           for the new values make other groups.
               joint       likewise.
    Cost       O(rows) a page, in Arrow; O(1) a punctuation.

Source: J. Li, "Window Queries over Data Streams" (2008), ch. 4 (extended project).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.errors import GraphError
from oop_engine.core.operator import Emission, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import Linear, Punctuation
from oop_engine.core.schema import Schema
from oop_engine.operators.values.expressions import Expression, columns_of, evaluate, text_of, types_of

__all__ = ["WithColumns"]


@checked_arguments
class WithColumns(Operator):
    """Adds the columns of ``columns`` (name to expression), or puts them in place of old ones.

    Expressions see the input, not each other (see ``oop_engine.operators.values.expressions``).  A new column
    goes to the end, one that replaces another takes its place.  Raises ``GraphError`` if
    there is nothing to compute, and when the graph is built if an expression does not fit
    or the progressing attribute would be replaced.

    >>> import pyarrow.compute as pc
    >>> schema = Schema({"ts": pa.int64(), "len": pa.int64()}, "ts", "s")
    >>> bits = WithColumns({"bits": pc.field("len") * 8}).opened(schema)
    >>> [(port, page)] = bits.on_page(0, Page.of(schema, {"ts": [1], "len": [40]}))
    >>> page.to_pylist()
    [{'ts': 1, 'len': 40, 'bits': 320}]
    """

    distributes = True
    revisions = "passes"

    def __init__(self, columns: Mapping[str, Expression]) -> None:
        if not columns:
            msg = f"WithColumns needs at least one column to compute; got {columns!r}"
            raise GraphError(msg)
        self.columns = dict(columns)

    def uses_arrival(self) -> bool:
        return False

    def output_schemas(self, inputs: tuple[Schema, ...]) -> tuple[Schema, ...]:
        [schema] = inputs
        if schema.change in self.columns:
            msg = f"WithColumns: {schema.change!r} tells whether a row is emitted or retracted: compute another column"
            raise GraphError(msg)
        if schema.progressing in self.columns:
            msg = (
                f"WithColumns: the progressing attribute {schema.progressing!r} must stay as it is, for punctuation is "
                f"about it: compute a column of another name"
            )
            raise GraphError(msg)
        fields = {field.name: field for field in schema.fields}
        for name, kind in zip(self.columns, types_of("WithColumns", self._expressions, schema), strict=True):
            fields[name] = pa.field(name, kind)
        return (Schema(pa.schema(list(fields.values())), schema.progressing, schema.unit, schema.change),)

    def partition_keys(self, inputs: tuple[Schema, ...]) -> None:
        return None

    def lineage(self, column: str, inputs: tuple[Schema, ...]) -> tuple[str | None, ...]:
        source = self.columns.get(column, column)
        return (source if isinstance(source, str) else None,)

    def reads(
        self, inputs: tuple[Schema, ...], downstream: tuple[frozenset[str], ...]
    ) -> tuple[frozenset[str], ...]:
        own = columns_of(self._expressions, inputs[0])
        return (own | (downstream[0] & frozenset(inputs[0].names)),)

    def keeps_order(self, inputs: tuple[Schema, ...]) -> bool:
        return True

    def open(self) -> None:
        self._types = [self.schemas_out[0].type_of(name) for name in self.columns]

    def on_page(self, port: int, page: Page) -> Iterator[Emission]:
        computed = evaluate("WithColumns", self._expressions, self._types, page.batch)
        arrays = dict(zip(self.columns, computed, strict=True))
        [schema] = self.schemas_out
        columns = [arrays[n] if n in arrays else page.column(n) for n in schema.names]
        yield 0, page.with_batch(schema, pa.RecordBatch.from_arrays(columns, schema=schema.fields))

    def on_punctuation(self, port: int, punctuation: Punctuation) -> Iterator[Emission]:
        if isinstance(punctuation, Linear) or self.columns.keys().isdisjoint(punctuation.attributes):
            yield 0, punctuation

    def describe(self) -> str:
        return f"WithColumns {', '.join(f'{name} = {text_of(e)}' for name, e in self.columns.items())}"

    @property
    def _expressions(self) -> list[Expression]:
        return list(self.columns.values())
