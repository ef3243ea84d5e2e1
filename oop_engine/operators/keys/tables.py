"""Tables: operators look keys up in kernels."""

from __future__ import annotations

from oop_engine.core.groups.group_index import KeyTables
from oop_engine.operators.keys.key_table import KeyTable
from oop_engine.operators.keys.text_table import TextTable
from oop_engine.system.kernel import COMPILES

__all__ = ["IN_KERNELS"]

IN_KERNELS = KeyTables(KeyTable, TextTable if COMPILES else None)
"""The tables of integers, and of texts and bytes, whose rows are looked up in kernels."""
