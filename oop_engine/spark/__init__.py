"""The same graphs on Apache Spark, through PySpark: nothing is loaded before it is asked for."""
