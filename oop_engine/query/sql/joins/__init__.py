"""Joins of SQL: conditions, and the joins that they make."""
