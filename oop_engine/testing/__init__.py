"""The kit for testing operators and graphs, ours and yours.

``Driver`` feeds one operator by hand, ``GraphDriver`` a whole graph, ``Inline`` runs one without asyncio.  ``Case`` and
``contract_suite`` try the laws
that every operator keeps, on random streams; those two need Hypothesis and pytest
(``pip install 'oop-engine[testing]'``), and nothing of them is loaded before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.core.errors import not_installed
from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.testing.case import Case as Case, Row as Row
    from oop_engine.runners.inline import Inline as Inline
    from oop_engine.testing.driver import END as END, Driver as Driver, multiset as multiset
    from oop_engine.testing.driver import net_content as net_content
    from oop_engine.testing.graph_driver import GraphDriver as GraphDriver
    from oop_engine.testing.laws import LAWS as LAWS, check as check
    from oop_engine.testing.laws import contract_suite as contract_suite
    from oop_engine.testing.streams import Event as Event, Script as Script, as_messages as as_messages
    from oop_engine.testing.streams import row_lists as row_lists, rows_of as rows_of, scripts as scripts
    from oop_engine.testing.trial import Trial as Trial, draw_script as draw_script
else:
    _load, __dir__ = shelf(__name__)

    def __getattr__(name: str) -> object:
        """Load a name when it is first used."""
        try:
            return _load(name)
        except ModuleNotFoundError as error:
            place = f"oop_engine.testing.{name}"
            raise not_installed(place, str(error.name), "testing") from error
