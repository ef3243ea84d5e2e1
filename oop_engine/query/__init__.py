"""Queries in words that Polars, PySpark and SQL have: ``stream`` and ``scan``, and the methods that follow.

They make the graphs that are built by hand, and nothing in the engine knows of them.

    step          an operator of a query, and the steps that it reads
    data_stream   DataStream: a stream, and the methods that make another of it
    windowed      streams with a key, and with windows, which aggregates read
    event_time    the column of event time: how far out of order, how silent
    sources       stream, scan
    graph_of      a query becomes a graph, in which equal steps are one node
    shared        aggregates of equal windows become one
    columns_read  a run has no other columns than those that are read
    running       a query over feeds: results, rows as they become final, services
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oop_engine.system.lazy_names import shelf

if TYPE_CHECKING:
    from oop_engine.query.data_stream import DataStream as DataStream
    from oop_engine.query.running import as_graph as as_graph
    from oop_engine.query.sources import Columns as Columns
    from oop_engine.query.windowed import KeyedStream as KeyedStream, WindowedStream as WindowedStream
else:
    __getattr__, __dir__ = shelf(__name__)
