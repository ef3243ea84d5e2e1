"""Changes that are asked for while a query runs: admitted at the driver, and written down for the next micro-batch.

How many there are is in the offset that Spark keeps before a micro-batch runs, so one that runs again has the changes
that it had.  Each source gives those that are new before its next segment.  By then all that was read before has
reached the operator, so the times that its subtasks have seen tell whether a change is not too late; they are in their
states, after a restart too.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from oop_engine.core.change import Change, Reached
from oop_engine.core.errors import UsageError
from oop_engine.core.graphs.leading import leading_to
from oop_engine.runners.changes import Changes
from oop_engine.spark.state.checkpoint import Checkpoint
from oop_engine.spark.tasks.job import Job
from oop_engine.spark.tasks.stage_task import subtask_at

__all__ = ["AskedChanges"]


class AskedChanges:
    """The changes of a query that runs in micro-batches; ``frames``: the sources that are DataFrames."""

    def __init__(self, job: Job, checkpoint: Checkpoint, frames: Collection[str]) -> None:
        self._job, self._kept, self._frames = job, checkpoint, frames
        self._door = Changes(job.cut.plan)
        self._known = checkpoint.changes() if job.changes else []
        for frame in self._known:
            self._door.take(Change.of_frame(frame))

    def ask(self, change: Change) -> None:
        """Change an operator from the next micro-batch on.  A change that is registered already is not taken twice.

        Raises ``UsageError``, ``GraphError`` or ``ContractError`` if it cannot be; then nothing has changed.
        """
        change = self._door.named(change)
        self._check_possible(change)
        frame = json.loads(json.dumps(self._door.written(change).frame()))
        if frame in self._known:  # of a micro-batch that runs again
            return
        plan = self._job.cut.plan
        Reached(self._reached(change.operator)).check(
            change, f"graph {plan.name!r}, operator {change.operator!r}"
        )
        self._door.admitted(change)
        self._kept.change(frame)
        self._known.append(frame)

    def _check_possible(self, change: Change) -> None:
        plan = self._job.cut.plan
        reason = ""
        if not self._job.changes:
            reason = "a run in one batch has them in its feeds"
        elif not self._job.subtasks:
            reason = (
                "with state='store' the times that its subtasks have seen are not known: take state='files'"
            )
        elif frames := leading_to(plan, change.operator) & set(self._frames):
            reason = (
                f"{', '.join(sorted(frames))} is a DataFrame, which cannot bring it: give a folder of traces"
            )
        if reason:
            msg = f"graph {plan.name!r}: version {change.version} of a change cannot be asked for; {reason}"
            raise UsageError(msg)

    def _reached(self, operator: str) -> int:
        """Return the largest time that any subtask of an operator has seen.  O(bytes of their states)."""
        [component] = [c for c in self._job.cut.components if operator in c.nodes]
        largest = Reached().largest
        for group in range(component.groups):
            state = self._kept.state_of(f"{component.number}-{group}")
            if state is not None:
                subtask = subtask_at(self._job, component.number, group)
                subtask.restore(state)
                largest = max(largest, subtask.reached)
        return largest
