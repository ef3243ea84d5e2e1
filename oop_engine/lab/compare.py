"""Compare: where ``compare`` was before the first release, which removes this file; it is in ``oop_engine.lab`` itself.

Once a submodule is imported, its package has it under its name, where the function of that name was.  So this module
can be called as the function can.
"""

from __future__ import annotations

import sys
import warnings
from types import ModuleType

from oop_engine.lab.comparison import compare

__all__ = ["compare"]


class _Called(ModuleType):
    __call__ = staticmethod(compare)


warnings.warn(
    "oop_engine.lab.compare has moved: from oop_engine.lab import compare", DeprecationWarning, stacklevel=2
)
sys.modules[__name__].__class__ = _Called
