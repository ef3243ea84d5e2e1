"""Stories on traces, one a file: the graph, the trace, the sweep, and the claims."""
