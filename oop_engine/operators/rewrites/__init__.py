"""Graphs made of graphs."""
