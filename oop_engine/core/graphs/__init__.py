"""Graphs, their contracts, and what passes their edges."""
