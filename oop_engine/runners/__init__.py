"""Runners: the ways to make a graph move.  Each is an adapter; none knows an operator."""
