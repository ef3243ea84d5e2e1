"""Traces: files of tuples in arrival order, a generator of disordered ones, and a measure of disorder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.traces.disorder import Disorder as Disorder, Link as Link
    from oop_engine.traces.profiling import Profile as Profile, profile as profile
    from oop_engine.traces.trace import Trace as Trace
else:
    __getattr__, __dir__ = shelf(__name__)
