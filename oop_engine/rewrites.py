"""Rewrites: one graph to another that computes the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.core.graphs.halves import consolidated as consolidated
    from oop_engine.operators.rewrites.prune_punctuation import prune_punctuation as prune_punctuation
    from oop_engine.operators.rewrites.in_order import in_order as in_order
else:
    __getattr__, __dir__ = shelf(__name__)
