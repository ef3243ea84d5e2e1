"""Operators of the edge, where streams enter: progress is decided here, and nowhere else."""
