"""Revision streams: rows that are emitted, and retracted."""
