"""Event time: the policy of punctuation that a source's disorder asks for."""

from __future__ import annotations

from dataclasses import dataclass

from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import UsageError
from oop_engine.core.units import Length
from oop_engine.operators.edge.punctuate import Punctuate
from oop_engine.operators.policies.policies import BoundedDisorder, Heartbeat, Ordered, PerGroup, Upstream
from oop_engine.operators.policies.running_bound import Lag, Policy

__all__ = ["Disorder", "EventTime"]

Disorder = Length | Policy
"""How far a record may come behind the latest: a length, ``"ordered"``, ``"upstream"``, or a policy."""

_WORDS = {"ordered": Ordered, "upstream": Upstream}


@dataclass(frozen=True)
class EventTime:
    """The arguments of ``event_time``; ``disorder`` None: to be measured on the feed."""

    disorder: Disorder | None
    per: tuple[str, ...]
    idle: Length | None
    watermark: Disorder | None

    def punctuate(self, disorder: Disorder | None = None) -> Punctuate:
        """Return the operator; ``disorder`` is the measured one, where none was given."""
        given = self.disorder if self.disorder is not None else disorder
        soft = None if self.watermark is None else self._policy(_policy(self.watermark, "watermark"))
        return Punctuate(
            self._policy(_policy("ordered" if given is None else given, "disorder")), watermark=soft
        )

    def _policy(self, whole: Policy) -> Policy:
        """Return the policy of each key, or of the stream; while the source is silent it follows the clock."""
        if self.idle is not None:
            slack = whole.slack if isinstance(whole, BoundedDisorder) else 0
            silent: Policy = Heartbeat(whole, self.idle, slack)
        else:
            silent = whole
        if not self.per:
            return silent
        if not isinstance(whole, Lag):
            msg = f"event_time: per={self.per} needs a disorder that is a length or 'ordered'; got {whole!r}"
            raise UsageError(msg)
        return PerGroup(whole, self.per, linear=silent if self.idle is not None else None)


def _policy(given: Disorder, place: str) -> Policy:
    if isinstance(given, Policy):
        return given
    if isinstance(given, str) and given.isalpha():
        if given not in _WORDS:
            hint = did_you_mean(given, _WORDS)
            forms = "a length such as '90 s', 'ordered', 'upstream' or a policy"
            msg = f"event_time: {place} must be {forms}; got {given!r}{hint}"
            raise UsageError(msg)
        return _WORDS[given]()
    return BoundedDisorder(given)
