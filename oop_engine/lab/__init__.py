"""Experiments: a question, the plans that answer it, and their costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.lab.comparison import Comparison as Comparison, compare as compare
    from oop_engine.lab.run import Run as Run
    from oop_engine.lab.scenario import (
        Claim as Claim,
        Parameter as Parameter,
        Scenario as Scenario,
        Sweep as Sweep,
        Values as Values,
        Variant as Variant,
    )
    from oop_engine.lab.warm_kernels import warm as warm
else:
    __getattr__, __dir__ = shelf(__name__)
