"""Outcomes: the parts of the ``Outcome`` of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.core.graphs.statistics import Statistics as Statistics
    from oop_engine.runners.dispatch import Result as Result
    from oop_engine.runners.feeds.bad_rows import BadRow as BadRow
else:
    __getattr__, __dir__ = shelf(__name__)
