"""The data pipeline: raw events at scale are made ready on Spark, and a graph runs on them; nothing is loaded yet."""
