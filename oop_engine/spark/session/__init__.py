"""The session of Spark, its Java, and how both end."""
