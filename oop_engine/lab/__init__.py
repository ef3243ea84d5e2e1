"""Experiments: a question, the plans that answer it, and what they cost."""
