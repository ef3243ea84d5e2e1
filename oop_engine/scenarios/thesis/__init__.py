"""Experiments and examples of J. Li, Window Queries over Data Streams, Portland State University, 2008."""

SOURCE = "the thesis: Li, Window Queries over Data Streams, 2008"
