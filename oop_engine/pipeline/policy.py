"""Choosing a policy: its cost by the profile, and the one of least delay that loses no more tuples than allowed.

Ordered           nothing is out of order: no delay
BoundedDisorder   the delay is the lateness that the wanted share of the tuples does not exceed
PerGroup          the same within each group: worth its state a group if it at least halves the delay
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import oop_engine.operators.policies.policies  # noqa: F401  (policies are known once they are imported)
from oop_engine.core.close_names import did_you_mean
from oop_engine.core.errors import EngineError, UsageError
from oop_engine.core.schema import Schema
from oop_engine.operators.policies.running_bound import POLICIES, Policy
from oop_engine.pipeline.measure import Measured
from oop_engine.traces.lateness import Histogram
from oop_engine.traces.lengths import length_text
from oop_engine.traces.profiling import Candidate

__all__ = ["PolicyChoice", "choose", "read_policy"]

_WORTH = 2


@dataclass(frozen=True)
class PolicyChoice:
    """The policy of a source, as text that ``read_policy`` reads; the reason; and the candidates."""

    policy: str
    reason: str
    candidates: tuple[Candidate, ...] = ()


def choose(measured: Measured, share: float) -> PolicyChoice:
    """Return the policy under which at least ``share`` of the tuples are in time, and the delay is least."""
    profile = measured.profile
    whole = _candidate(measured.lateness, share, profile.unit, profile.rate)
    lossless = "loses nothing" if share == 1 else f"keeps {share:.4%} of the tuples in time"
    if not profile.by:
        return PolicyChoice(whole.policy, f"delay {whole.delay} {profile.unit}: {lossless}", (whole,))
    inner = _candidate(measured.own, share, profile.unit, profile.rate)
    grouped = Candidate(
        f"PerGroup({inner.policy}, by={profile.by!r}, linear={whole.policy})",
        inner.late,
        inner.delay,
        inner.state,
    )
    both = (whole, grouped)
    against = f"{whole.delay} {profile.unit} for the whole stream, {inner.delay} {profile.unit} per group"
    if grouped.delay * _WORTH <= whole.delay and whole.delay:
        return PolicyChoice(
            grouped.policy, f"delay {against}: groups are worth their state; {lossless}", both
        )
    return PolicyChoice(whole.policy, f"delay {against}: not worth a state per group; {lossless}", both)


def _candidate(seen: Histogram, share: float, unit: str, rate: float) -> Candidate:
    slack = seen.most if share == 1 else seen.quantile(share)
    policy = f'BoundedDisorder("{length_text(slack, unit)}")' if slack else "Ordered()"
    return Candidate(policy, seen.above(slack), slack, round(slack * rate))


def read_policy(text: str, what: str, schema: Schema | None = None) -> Policy:
    """Return the policy that ``text`` spells, such as ``PerGroup(Ordered(), by=("link",))``.

    Only policies that are registered (``register_policy``) and plain values are understood; nothing is executed.
    Raises ``UsageError`` in the name of ``what`` for all else, and if it does not fit ``schema``.
    """
    try:
        policy = _value(ast.parse(text.strip(), mode="eval").body)
        if isinstance(policy, Policy) and schema is not None:
            policy.running(schema, what)
    except (SyntaxError, TypeError, ValueError, EngineError) as error:
        msg = f"{what}: {text!r} is no policy: {error}"
        raise UsageError(msg) from error
    if not isinstance(policy, Policy):
        msg = f'{what}: must be a policy such as Ordered() or BoundedDisorder("5 s"); got {text!r}'
        raise UsageError(msg)
    return policy


def _value(node: ast.expr) -> Any:
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    if not isinstance(node.func, ast.Name) or node.func.id not in POLICIES:
        name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        msg = f"there are {', '.join(sorted(POLICIES))}{did_you_mean(name, POLICIES)}"
        raise ValueError(msg)
    named = {word.arg: _value(word.value) for word in node.keywords if word.arg}
    return POLICIES[node.func.id](*map(_value, node.args), **named)
