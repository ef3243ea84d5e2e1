"""Service: a graph that runs for months, with its checkpoints."""
