"""Kernels of sessions: open runs in cells of time, or in lists, and windows as they leave."""
