"""Comparisons that other people made of stream processors, repeated here."""
