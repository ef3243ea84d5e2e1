"""The kit for testing operators and graphs, ours and yours.

``Driver`` feeds one operator by hand, ``GraphDriver`` a whole graph.  ``Case`` and ``contract_suite`` try the laws
that every operator keeps, on random streams; those two need Hypothesis and pytest
(``pip install 'oop-engine[testing]'``), and nothing of them is loaded before it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from oop_engine.core.errors import SetupError
from oop_engine.testing.case import Case, Row
from oop_engine.testing.driver import END, Driver, multiset
from oop_engine.testing.graph_driver import GraphDriver

if TYPE_CHECKING:
    from oop_engine.testing.laws import LAWS, check, contract_suite, draw_script
    from oop_engine.testing.streams import Event, Script, as_messages, row_lists, rows_of, scripts

__all__ = [
    "END",
    "LAWS",
    "Case",
    "Driver",
    "Event",
    "GraphDriver",
    "Row",
    "Script",
    "as_messages",
    "check",
    "contract_suite",
    "draw_script",
    "multiset",
    "row_lists",
    "rows_of",
    "scripts",
]

_LAWS = ("LAWS", "check", "contract_suite", "draw_script")
_STREAMS = ("Event", "Script", "as_messages", "row_lists", "rows_of", "scripts")


def __getattr__(name: str) -> Any:
    """Load the laws and the strategies when they are first used."""
    if name not in (*_LAWS, *_STREAMS):
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    try:
        module = importlib.import_module(f"{__name__}.{'laws' if name in _LAWS else 'streams'}")
    except ModuleNotFoundError as error:
        msg = f"oop_engine.testing.{name} needs {error.name}: pip install 'oop-engine[testing]'"
        raise SetupError(msg) from error
    return getattr(module, name)
