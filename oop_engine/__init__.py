"""Out-of-order stream processing with punctuation: window queries that never wait for order.

The root has the names of first programs: ``stream``, ``scan`` and ``sql``, which make queries; a ``Graph`` of operators
over a ``Schema``; ``Page`` and punctuation (``Linear``, ``GroupWise``, ``Joint``), its messages; ``run``, ``arun``,
``replay`` and ``serve``, which run it; the errors that a program catches.

All else is on a shelf, a module with the name of its things: ``oop_engine.operators``, ``windows``, ``aggregates``,
``joins``, ``policies``, ``triggers``, ``sources``, ``sinks``, ``formats``, ``traces``, ``errors``, ``outcomes``,
``query``, ``service``, ``spark``, ``lab``, ``rewrites``, ``testing``, ``extend``, ``thesis``.  Each name has one
shelf; the root repeats four errors, and ``oop_engine.operators`` the values that most graphs have.  A name is loaded
when it is first used, so that the program answers at once.
"""

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.core.change import Change as Change
    from oop_engine.core.errors import (
        ContractError as ContractError,
        EngineError as EngineError,
        GraphError as GraphError,
        UsageError as UsageError,
    )
    from oop_engine.core.graphs.graph import Graph as Graph, Stream as Stream
    from oop_engine.core.operator import Operator as Operator
    from oop_engine.core.page import Page as Page
    from oop_engine.core.punctuation import (
        FOREVER as FOREVER,
        GroupWise as GroupWise,
        Joint as Joint,
        Linear as Linear,
        NEVER as NEVER,
        Punctuation as Punctuation,
        Watermark as Watermark,
    )
    from oop_engine.core.schema import Schema as Schema
    from oop_engine.face import run as run
    from oop_engine.query.sources import scan as scan, stream as stream
    from oop_engine.query.sql.entry import sql as sql
    from oop_engine.runners.local import Local as Local
    from oop_engine.runners.outcome import Outcome as Outcome
    from oop_engine.runners.replay import arun as arun, replay as replay
    from oop_engine.service.serve import serve as serve
    from oop_engine.service.why import why as why
    from oop_engine.traces.trace import open_trace as open_trace
    from oop_engine.traces.trace_writing import write_trace as write_trace
else:
    __getattr__, __dir__ = shelf(__name__)
