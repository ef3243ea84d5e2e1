"""The engine of window aggregation."""
