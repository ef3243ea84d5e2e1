"""Kernels of text keys: their words, and the table that finds them."""
