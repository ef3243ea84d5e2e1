"""What makes progress at the edge of a graph."""
