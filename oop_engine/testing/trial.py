"""A random stream for an operator, and one run over it, for all laws that look at them."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from oop_engine.testing.case import Case, Row
from oop_engine.testing.driver import Driver
from oop_engine.testing.streams import Script, as_messages, row_lists, rows_of, scripts

if TYPE_CHECKING:
    from hypothesis import strategies as st

    from oop_engine.core.operator import Message, State

__all__ = ["Trial", "draw_script"]


class Trial:
    """A stream that was drawn for a case, and a run over it; each is made once, when it is asked for."""

    def __init__(self, case: Case, data: st.DataObject) -> None:
        self.case = case
        self.data = data

    @cached_property
    def script(self) -> Script:
        """Return the stream."""
        return draw_script(self.case, self.data)

    @cached_property
    def rows(self) -> list[list[Row]]:
        """Return the tuples of the stream, of each input."""
        return rows_of(self.script, len(self.case.inputs))

    @cached_property
    def messages(self) -> list[tuple[int, Message]]:
        """Return the stream as the run gets it."""
        return as_messages(self.script, self.case.inputs)

    @property
    def whole(self) -> Driver:
        """Return the operator after all of the stream and its end."""
        return self._ran[0]

    @property
    def states(self) -> list[State]:
        """Return its states before the first message, and after each."""
        return self._ran[1]

    @property
    def taken(self) -> list[Message]:
        """Return the messages as they are after the run."""
        return self._ran[2]

    @property
    def moved(self) -> Driver:
        """Return an operator that was saved and restored after each message, after the end."""
        return self._moved[0]

    @property
    def states_of_moved(self) -> list[State]:
        """Return its states after each message."""
        return self._moved[1]

    @cached_property
    def _moved(self) -> tuple[Driver, list[State]]:
        driver = Driver(self.case.operator, *self.case.inputs)
        states: list[State] = []
        for port, message in self.messages:
            driver.feed(port, message)
            driver.move()
            states.append(driver.operator.state())
        return driver.run([]), states

    @cached_property
    def _ran(self) -> tuple[Driver, list[State], list[Message]]:
        driver = Driver(self.case.operator, *self.case.inputs)
        states = [driver.operator.state()]
        for port, message in self.messages:
            driver.feed(port, message)
            states.append(driver.operator.state())
        return driver.run([]), states, [message for _, message in self.messages]

    def run(self, script: Script | None = None, **cut: int) -> Driver:
        """Return another run: over the same stream, or over ``script``."""
        return Driver(self.case.operator, *self.case.inputs).run(
            as_messages(self.script if script is None else script, self.case.inputs, **cut)
        )


def draw_script(
    case: Case, data: st.DataObject, rows: list[list[Row]] | None = None, *, ordered: bool = False
) -> Script:
    """Draw a stream for ``case``: tuples (or ``rows``, of each input) in an order it takes, with true punctuation.

    ``ordered``: sorted, even if it takes any order.
    """
    rows = rows or [data.draw(tuples) for tuples in _tuples(case)]
    ordered, ports = ordered or case.operator.needs_order, range(len(case.inputs))
    keys = [[key[port] for key in case.operator.partition_keys(case.inputs) or ()] for port in ports]
    return data.draw(scripts(case.inputs, rows, ordered=ordered, grouped=not ordered, keys=keys))


@lru_cache
def _tuples(case: Case) -> list[st.SearchStrategy[list[Row]]]:
    return [row_lists(schema, case.domains) for schema in case.inputs]
