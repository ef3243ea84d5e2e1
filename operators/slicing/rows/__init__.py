"""Tuple-based windows by arrival: partial aggregates that slide over the rows."""
