"""Emit: which versions of its results a window aggregate emits before they are final."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from oop_engine.core.arguments import checked_arguments
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import GraphError
from oop_engine.core.schema import Schema
from oop_engine.operators.triggers.asking import AfterDelay, OnRequest
from oop_engine.operators.triggers.basic import AfterCount, Trigger, check_trigger

__all__ = ["Emit", "Mode"]

Mode = Literal["retracting", "accumulating", "discarding"]


@checked_arguments
@dataclass(frozen=True)
class Emit:
    """Versions of results.  The *final* version always leaves, when punctuation completes the window, if it differs.

    ``early``: asked at the end of a page that touched a window whose end the watermark has not passed.
    ``on_time``: a version leaves when the watermark passes the end.  ``late``: asked as ``early``, behind that.
    None: no such version.  A version leaves only if the result differs from the last one; ``repeat``: that on time
    leaves all the same.

    ``mode``: ``"retracting"``: the last version is retracted, -1, and the new one emitted, +1: a revision stream,
    which operators take.  ``"accumulating"``: the new one alone, for a sink that replaces rows by their key.
    ``"discarding"``: the difference to the last one, of counts and integer sums, for a sink that adds.
    ``info``: with columns ``version``, from 0 on, and ``timing``: early, on_time, late, final.

    Raises ``GraphError`` for parameters of other types.
    """

    early: Trigger | None = None
    on_time: bool = True
    late: Trigger | None = field(default_factory=lambda: AfterCount(1))
    mode: Mode = "retracting"
    info: bool = False
    repeat: bool = False

    @property
    def triggers(self) -> list[Trigger]:
        """The triggers that the two are made of, each once."""
        leaves = (
            trigger for whole in (self.early, self.late) if whole is not None for trigger in whole.leaves()
        )
        return list(dict.fromkeys(leaves))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs of the operator: ``ask`` is that of requests."""
        return ("in", "ask") if any(isinstance(trigger, OnRequest) for trigger in self.triggers) else ("in",)

    def clock_every(self, schema: Schema) -> int | None:
        """Return how often the arrival clock is asked, in units of the attribute; None: never."""
        every = (trigger.every(schema) for trigger in self.triggers if isinstance(trigger, AfterDelay))
        return min(every, default=None)

    @property
    def for_sinks(self) -> str:
        """Why only sinks take the versions, in a few words; "": operators do."""
        if self.mode == "retracting":
            return ""
        return f"rows of mode={self.mode!r} {'replace' if self.mode == 'accumulating' else 'add to'} earlier ones"

    def __post_init__(self) -> None:
        for name in ("early", "late"):
            if not isinstance(getattr(self, name), Trigger | None):
                msg = f"Emit: {name} must be a trigger such as AfterCount(1), or None; got {getattr(self, name)!r}"
                raise GraphError(msg)
        for whole in filter(None, (self.early, self.late)):
            check_trigger(whole)
        if self.mode not in get_args(Mode):
            msg = f"Emit: mode must be one of {', '.join(map(repr, get_args(Mode)))}; got {self.mode!r}"
            msg += did_you_mean(self.mode, get_args(Mode))
            raise GraphError(msg)
