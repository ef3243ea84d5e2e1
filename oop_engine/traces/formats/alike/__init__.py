"""Rows that are all written alike: blocks of them become columns in one pass."""
