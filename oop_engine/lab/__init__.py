"""Experiments: a question, the plans that answer it, and their costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.lab.comparison import Comparison as Comparison
    from oop_engine.lab.comparison import compare as compare
    from oop_engine.lab.run import Run as Run
    from oop_engine.lab.scenario import (
        Claim as Claim,
    )
    from oop_engine.lab.scenario import (
        Parameter as Parameter,
    )
    from oop_engine.lab.scenario import (
        Scenario as Scenario,
    )
    from oop_engine.lab.scenario import (
        Sweep as Sweep,
    )
    from oop_engine.lab.scenario import (
        Values as Values,
    )
    from oop_engine.lab.scenario import (
        Variant as Variant,
    )
    from oop_engine.lab.warm_kernels import warm as warm
else:
    __getattr__, __dir__ = shelf(__name__)
