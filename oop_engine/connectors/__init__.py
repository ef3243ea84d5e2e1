"""Connectors: sources that a service reads, sinks that it writes, and the formats of their messages."""
