"""Running a graph on Apache Spark, through PySpark; nothing of it is loaded before it is asked for."""
