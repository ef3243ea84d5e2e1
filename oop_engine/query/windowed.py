"""Streams with a key and with windows, which aggregates read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never, NoReturn

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError, UsageError
from oop_engine.core.schema import Schema
from oop_engine.core.units import Length
from oop_engine.operators.aggregates import Aggregation
from oop_engine.operators.with_columns import WithColumns
from oop_engine.operators.triggers import Emit, Trigger
from oop_engine.operators.triggers.basic import AfterCount
from oop_engine.operators.window_aggregate import WindowAggregate
from oop_engine.operators.windows import Global, Sliding, Tumbling, Windows
from oop_engine.query.expression import Aggregates
from oop_engine.query.step import StepOutput, of_operator

if TYPE_CHECKING:
    from oop_engine.query.data_stream import DataStream

__all__ = ["KeyedStream", "WindowedStream", "names_of", "window_of"]

_NO_WINDOW = (
    "an aggregate without a window has a state for each key and a result only when the stream ends: "
    "add .window('1 min'), or .emit(...), whose early results say how it grows, or read a source that ends"
)


class KeyedStream:
    """A stream with key columns; ``window`` and ``agg`` can follow."""

    def __init__(
        self, output: StepOutput, keys: tuple[str, ...], made: Callable[[StepOutput], DataStream]
    ) -> None:
        self._output, self._keys, self._made = output, keys, made

    def window(
        self, windows: Windows | Mapping[str, Windows] | Length, every: Length | None = None
    ) -> WindowedStream:
        """Return the stream in windows: a definition, several by name, or a length, with ``every`` sliding.

        >>> from oop_engine import stream
        >>> from oop_engine.operators import Count
        >>> log = stream("log", {"ts": "timestamp[us]", "host": "string"}).event_time("ts", "90 s")
        >>> log.group_by("host").window("10 min", every="1 min").agg(n=Count()).columns
        ['host', 'window_start', 'window_end', 'n']
        """
        return WindowedStream(self._output, self._keys, window_of(windows, every), self._made)

    def agg(self, *unnamed: Never, **aggregates: Aggregation | str) -> DataStream:
        """Return the aggregates of each key over the whole stream, when it ends."""
        return WindowedStream(self._output, self._keys, Global(), self._made).agg(*unnamed, **aggregates)

    def emit(self, early: Trigger | None = None, late: Trigger | None = None) -> WindowedStream:
        """Return the stream as one window, whose results change before it ends."""
        return WindowedStream(self._output, self._keys, Global(), self._made).emit(early, late)

    def __getattr__(self, name: str) -> NoReturn:
        raise _not_yet(self, name, "window('1 min') or agg(n=Count())")

    def __repr__(self) -> str:
        return f"KeyedStream{self._output.schema} by {', '.join(self._keys)}"


class WindowedStream:
    """A stream in windows; ``agg`` follows, with ``emit`` before it for results before windows are final."""

    def __init__(
        self, output: StepOutput, keys: tuple[str, ...], windows: Windows | Mapping[str, Windows],
        made: Callable[[StepOutput], DataStream], emit: Emit | None = None,
    ) -> None:  # fmt: skip
        self._output, self._keys, self._windows, self._made, self._emit = output, keys, windows, made, emit

    def group_by(self, *keys: str | Sequence[str]) -> WindowedStream:
        """Return the same windows of each key."""
        names = names_of(keys, self._output.schema, "group_by")
        return WindowedStream(self._output, names, self._windows, self._made, self._emit)

    def emit(self, early: Trigger | None = None, late: Trigger | None = None) -> WindowedStream:
        """Return the same windows with results before they are final: the aggregates are then a revision stream.

        ``early``: before the watermark has passed the window's end; ``late``: after that (default: at each record).
        """
        emit = Emit(early=early, late=AfterCount(1) if late is None else late)
        return WindowedStream(self._output, self._keys, self._windows, self._made, emit)

    def agg(self, *unnamed: Never, **aggregates: Aggregation | str) -> DataStream:
        """Return one record for each window and key: the key, window_start, window_end, and the aggregates.

        An aggregate is one of ``oop_engine.operators``, such as ``Count()`` or ``Sum("bytes")``, or a text in SQL,
        ``"sum(bytes / 1024)"``.  Raises ``GraphError`` if there are none, and if one does not fit its column.
        """
        if unnamed or not aggregates:
            got = f"; got {', '.join(map(repr, unnamed))} without a name" if unnamed else ""
            msg = f"agg: name each aggregate, as in agg(n=Count(), bytes=Sum('bytes')){got}"
            raise GraphError(msg)
        read = Aggregates(aggregates, self._output.schema)
        source = self._output
        if read.computed:
            source = of_operator("with-columns", WithColumns(read.computed), source)
        windows = self._windows if isinstance(self._windows, Mapping) else {"": self._windows}
        endless = self._emit is None and any(isinstance(window, Global) for window in windows.values())
        operator = WindowAggregate(self._windows, read.made, self._keys, emit=self._emit)
        aggregated = of_operator("agg", operator, source, unbounded=_NO_WINDOW if endless else None)
        if computed := read.behind(aggregated.schema):
            aggregated = of_operator("with-columns", WithColumns(computed), aggregated)
        return self._made(aggregated)

    def __getattr__(self, name: str) -> NoReturn:
        raise _not_yet(self, name, "agg(n=Count())")

    def __repr__(self) -> str:
        by = f" by {', '.join(self._keys)}" if self._keys else ""
        return f"WindowedStream{self._output.schema}{by} in {self._windows}"


def names_of(given: Sequence[str | Sequence[str]], schema: Schema, place: str) -> tuple[str, ...]:
    """Return names that are given each for itself or as a list; raises ``GraphError`` if one is no column."""
    names = tuple(
        name for given_name in given for name in ([given_name] if isinstance(given_name, str) else given_name)
    )
    schema.require(names, place)
    return names


def window_of(given: Windows | Mapping[str, Windows] | Length, every: Length | None) -> Any:
    """Return a definition of windows; of a length tumbling ones, or sliding ones that begin ``every`` so long."""
    if isinstance(given, Mapping) or hasattr(given, "bound"):
        if every is not None:
            msg = (
                f"window: every is for a length, window('10 min', every='1 min'); got {given!r}: leave it out"
            )
            raise GraphError(msg)
        return given
    return Tumbling(given) if every is None else Sliding(given, every)


def _not_yet(stream: object, name: str, way_out: str) -> Exception:
    """Return the error for a method that comes later, or for none."""
    if name.startswith("_"):
        return AttributeError(name)
    kind = type(stream).__name__
    names = [attribute for attribute in dir(type(stream)) if not attribute.startswith("_")]
    hint = did_you_mean(name, names)
    msg = f"{kind} has no {name!r}{hint}; it needs {way_out} first, which gives a stream again"
    return UsageError(msg) if not hint else GraphError(msg)
