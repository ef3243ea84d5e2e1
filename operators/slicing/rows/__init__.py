"""Tuple-based windows by arrival: what slides over the rows."""
