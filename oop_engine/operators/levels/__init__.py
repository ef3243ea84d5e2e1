"""Aggregation in two levels: a light one near the source, and one that puts its partial aggregates together."""
