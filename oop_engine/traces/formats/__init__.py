"""Formats of traces, one a file."""
