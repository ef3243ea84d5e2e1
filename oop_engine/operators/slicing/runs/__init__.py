"""Runs: partial aggregates of neighbouring tuples of a group, and the windows that they make up."""
