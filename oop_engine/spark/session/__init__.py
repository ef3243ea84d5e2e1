"""The session of Spark: its Java, its settings, its failures, and how it ends."""
