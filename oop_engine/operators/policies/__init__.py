"""Policies of punctuation, and the progress of a source under them."""
