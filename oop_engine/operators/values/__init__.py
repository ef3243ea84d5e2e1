"""Expressions of users, how values are written, columns."""
