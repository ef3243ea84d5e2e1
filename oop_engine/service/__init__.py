"""Service: a graph that runs for months, with its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.service.dashboard.dashboard import Dashboard as Dashboard
    from oop_engine.service.serve import serve_forever as serve_forever
    from oop_engine.service.served import Served as Served
else:
    __getattr__, __dir__ = shelf(__name__)
