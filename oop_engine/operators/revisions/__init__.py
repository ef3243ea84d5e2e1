"""Revision streams: rows that are put out, and taken back."""
