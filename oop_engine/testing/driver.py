"""The kit for testing operators, ours and yours: drive one by hand, collect its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa

from oop_engine.core.change import Change
from oop_engine.core.operator import Message, Operator
from oop_engine.core.page import Page
from oop_engine.core.punctuation import NEVER, Punctuation, Watermark
from oop_engine.core.schema import Schema
from oop_engine.runners.dispatch import Signal, check_emission, handle
from oop_engine.runners.door import admitted
from oop_engine.runners.feeds.forms import Intake
from oop_engine.runners.feeds.kinds import MESSAGES

__all__ = ["END", "Driver", "as_bytes", "multiset", "net_content"]

END = "end"
"""Feed this to end a port."""


class Driver:
    """An opened operator, and everything it has emitted, by port.

    >>> from oop_engine import Linear, Operator, Schema
    >>> import pyarrow as pa
    >>> driver = Driver(Operator(), Schema({"ts": pa.int64()}, "ts", "s"))
    >>> driver.feed(0, Linear(60))
    [(0, Linear(below=60))]
    """

    def __init__(self, operator: Operator, *inputs: Schema) -> None:
        self.operator = operator.opened(*inputs)
        self.out: list[list[Message]] = [[] for _ in operator.outputs]

    def feed(self, port: int, message: Any) -> list[tuple[int, Message]]:
        """Hand over a message (or ``END``), as a runner does; return the emissions, and remember them.

        Rows may have any form that ``run`` takes.  Raises ``ContractError`` for other objects.
        """
        if not isinstance(message, (*MESSAGES, Change, str)):
            intake = Intake(self.operator.inputs[port], self.operator.schemas_in[port], "feed")
            return [each for made in intake.messages(message) for each in self.feed(port, made)]
        if isinstance(message, str):
            return self._handled(port, Signal.END)
        if not isinstance(message, Page | Change):
            message = admitted(self.operator.inputs[port], self.operator.schemas_in[port], message)
        return self._handled(port, message)

    def clock(self, now: int) -> list[tuple[int, Message]]:
        """Set the arrival clock to ``now``."""
        return self._handled(0, Signal.TICK, now)

    def _handled(self, port: int, message: Message | Signal, now: int = NEVER) -> list[tuple[int, Message]]:
        emissions = []
        for emission in handle(self.operator, port, message, now):
            check_emission(self.operator, emission, message)
            emissions.append(emission)
        return self._note(emissions)

    def run(self, events: Iterable[tuple[int, Any]]) -> Driver:
        """Feed many messages, then end every port that was not ended."""
        ended = set()
        for port, message in events:
            self.feed(port, message)
            if isinstance(message, str):
                ended.add(port)
        for port in range(len(self.operator.inputs)):
            if port not in ended:
                self.feed(port, END)
        return self

    def move(self) -> None:
        """Snapshot, throw the operator away, restore into a new one."""
        data = self.operator.snapshot()
        fresh = self.operator.opened(*self.operator.schemas_in)
        fresh.restore(data)
        self.operator = fresh

    def pages(self, port: int = 0) -> list[Page]:
        """Return the pages emitted on ``port``."""
        return [m for m in self.out[port] if isinstance(m, Page)]

    def rows(self, port: int = 0) -> list[dict[str, Any]]:
        """Return the tuples emitted on ``port``, in order."""
        return [row for page in self.pages(port) for row in page.to_pylist()]

    def content(self, port: int = 0, names: Collection[str] | None = None) -> list[dict[str, Any]]:
        """Return the tuples emitted on ``port`` and not retracted, without the column of changes.

        ``names``: these columns alone; None: all.
        """
        change, rows = self.operator.schemas_out[port].change, self.rows(port)
        if names is not None:
            rows = [{name: row[name] for name in row if name in names or name == change} for row in rows]
        return rows if change is None else net_content(rows, change)

    def punctuation(self, port: int = 0) -> list[Punctuation]:
        """Return the punctuation emitted on ``port``, without watermarks."""
        return [m for m in self.out[port] if isinstance(m, Punctuation) and not isinstance(m, Watermark)]

    def watermarks(self, port: int = 0) -> list[Watermark]:
        """Return the watermarks emitted on ``port``."""
        return [m for m in self.out[port] if isinstance(m, Watermark)]

    def _note(self, emissions: list[tuple[int, Message]]) -> list[tuple[int, Message]]:
        for port, message in emissions:
            if isinstance(message, Page):
                announced, name = self.operator.schemas_out[port], type(self.operator).__name__
                announced.check_page(message.schema, f"{name}, output {self.operator.outputs[port]!r}")
            self.out[port].append(message)
        return emissions


def net_content(rows: Iterable[dict[str, Any]], change: str) -> list[dict[str, Any]]:
    """Return the rows of a revision stream that are left, each as often as it is there, without ``change``.

    Raises ``AssertionError`` if one was retracted more often than it was emitted.
    """
    counts, plain = Counter[str](), dict[str, dict[str, Any]]()
    for row in rows:
        left = {name: value for name, value in sorted(row.items()) if name != change}
        counts[str(left)] += row[change]
        plain[str(left)] = left
    if wrong := [plain[key] for key, count in counts.items() if count < 0]:
        msg = f"rows were retracted more often than emitted: {wrong}"
        raise AssertionError(msg)
    return [plain[key] for key, count in counts.items() for _ in range(count)]


def multiset(rows: Iterable[dict[str, Any]], digits: int = 9) -> Counter[tuple[tuple[str, Any], ...]]:
    """Return rows as a multiset, floats rounded to ``digits`` significant digits.

    Sums of floats depend on the order of addition in the last digits; nothing else does.
    """
    return Counter(
        tuple((name, _rounded(value, digits)) for name, value in sorted(row.items())) for row in rows
    )


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else float(f"{value:.{digits}g}")
    return str(value) if isinstance(value, list | dict) else value


def as_bytes(message: Message) -> bytes:
    """Return a message as bytes, which are the same as long as nobody writes into it."""
    if not isinstance(message, Page):
        return repr(message).encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, message.batch.schema) as writer:
        writer.write_batch(message.batch)
    return bytes(sink.getvalue())
