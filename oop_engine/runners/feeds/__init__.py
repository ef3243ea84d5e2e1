"""Feeds: all forms in which a caller gives rows to a source, made into messages of its schema."""
