"""The shelves of public names, and the things on them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oop_engine.core.close_names import SHELVES

__all__ = ["OF_GRAPHS", "ON", "on_shelves"]

ON: dict[str, list[str]] = {shelf: sorted(import_module(f"oop_engine.{shelf}").__all__) for shelf in SHELVES}
"""The names on each."""
OF_GRAPHS = ("operators", "windows", "aggregates", "joins", "policies", "triggers", "rewrites", "thesis")
"""The shelves of operators and the values that they take."""


def on_shelves(*shelves: str) -> dict[str, Any]:
    """Return the things on some shelves by their names."""
    return {
        name: getattr(import_module(f"oop_engine.{shelf}"), name) for shelf in shelves for name in ON[shelf]
    }
