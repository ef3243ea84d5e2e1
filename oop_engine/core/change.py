"""Change: a message in a stream, other parameters of an operator behind, from a time of the stream on.

It takes effect by the progressing attribute, not by when it comes: the windows that begin at ``at`` or later are those
of after the change.  So copies of an operator, and runs over other orders of arrival, change at the same place, and
nobody has to stop.  That holds as long as nothing has passed that belongs behind: all tuples and bounds that have been
let through are below ``at``.  A change is never held back, nor does it pass a tuple or a punctuation.

It is given to every source that leads to the operator.  Where streams meet, the first copy goes on and the others are
dropped: the bound there is the least of the inputs', so it is below ``at`` as long as one copy is still to come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Self

from oop_engine.core.errors import ContractError
from oop_engine.core.page import Page
from oop_engine.core.punctuation import FOREVER, NEVER, GroupWise, Linear

__all__ = ["Change", "OpenWindows", "Reached"]


@dataclass(frozen=True)
class Change:
    """Definitions of windows that come (``add``, by name) and go (``drop``) at the time ``at``.

    An added definition has the windows that start at ``at`` or later, and sees the tuples from there on; a dropped one
    those that end at ``at`` or before, of the tuples before.  ``version``: the number of the change, larger than that
    of the one before.  ``operator``: its node in the graph; empty: the only one that can change.
    Raises ``ContractError`` if there is nothing to change, or a part of it is of another kind.

    >>> from oop_engine.operators import Tumbling
    >>> Change(1, at=30, add={"ten": Tumbling(10)}, drop=("twenty",)).drop
    ('twenty',)
    """

    version: int
    at: int
    add: Mapping[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    operator: str = ""

    __hash__ = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for name, value in (("version", self.version), ("at", self.at)):
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not (whole and NEVER < value < FOREVER):
                unit = ", in the unit of the stream (of timestamps: from 1970 on, as schema.instant counts)"
                _refuse(f"{name} must be an integer of 64 bits{unit if name == 'at' else ''}; got {value!r}")
        add: object = self.add
        drop: object = self.drop
        if not isinstance(drop, tuple):
            _refuse(f"drop must be a tuple of names, such as ('ten',); got {drop!r}")
        if not isinstance(add, Mapping):
            _refuse(f"add must be named definitions, such as {{'ten': Tumbling(10)}}; got {add!r}")
        names = [*self.add, *self.drop]
        if not names or not all(isinstance(name, str) for name in names):
            _refuse(f"there must be names to add or to drop, all of them texts; got {names}")

    def frame(self) -> list[Any]:
        """Return it as plain values; its definitions must be plain already (``Operator.written``)."""
        return [self.version, self.at, dict(self.add), list(self.drop), self.operator]

    @classmethod
    def of_frame(cls, frame: list[Any]) -> Self:
        """Return the change that ``frame`` returned."""
        version, at, add, drop, operator = frame
        return cls(version, at, add, tuple(drop), operator)


class Reached:
    """The largest time that has been let through by a stream, by a tuple or a bound."""

    def __init__(self, largest: int = NEVER) -> None:
        self.largest = largest

    def note(self, message: object) -> None:
        """Update the progress with a message.  O(rows) a page, O(groups) a group-wise punctuation."""
        match message:
            case Page() if len(message):
                self.largest = max(self.largest, int(message.times.max()))
            case Linear(below):
                self.largest = max(self.largest, below - 1)
            case GroupWise():
                going_on = message.below[
                    message.below < FOREVER
                ]  # a group that has ended has no more windows
                self.largest = max(self.largest, int(going_on.max(initial=NEVER + 1)) - 1)

    def check(self, change: Change, place: str) -> None:
        """Raise ``ContractError`` in the name of ``place`` if something of the time of a change has passed already."""
        if change.at <= self.largest:
            msg = (
                f"{place}: a change must hold from a time on that nothing has reached; got at={change.at}, and "
                f"{self.largest} has been let through: choose a later at, with some room"
            )
            raise ContractError(msg)


def _refuse(reason: str) -> NoReturn:
    msg = f"change: {reason}"
    raise ContractError(msg)


class OpenWindows(NamedTuple):
    """The windows of a definition that end behind the bound, and begin no later than the newest tuple.

    ``name``: that of the definition; ``number``: how many, for all groups alike; ``oldest``, ``newest``: start and end.
    None: not known, for they follow from the tuples of each group (sessions), or no bound has come.
    """

    name: str
    number: int | None = None
    oldest: tuple[int, int] | None = None
    newest: tuple[int, int] | None = None
