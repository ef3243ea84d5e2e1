"""Expressions of users, and how values are written."""
