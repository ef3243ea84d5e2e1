"""Experiments: a question, the plans that answer it, and their costs."""
