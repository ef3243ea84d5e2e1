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
