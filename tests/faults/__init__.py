"""Faults planted in the engine, one at a time: which claims of which scenarios notice each, and which notice none."""
