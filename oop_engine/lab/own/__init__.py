"""The parts of a graph that its user wrote."""
