"""What runs in the tasks of Spark."""
