"""What the contract suite tries each operator with: a file a family, a list ``CASES`` each."""

from __future__ import annotations

import importlib
import pkgutil

from oop_engine.testing import Case, Row

__all__ = ["Case", "Row", "all_cases"]


def all_cases() -> list[Case]:
    """Return the cases of all families."""
    modules = [importlib.import_module(m.name) for m in pkgutil.iter_modules(__path__, f"{__name__}.")]
    return [case for module in modules for case in module.CASES]
