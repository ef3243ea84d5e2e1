"""The work of Spark tasks: records, source chains, subtasks, and the metrics they send to the driver."""
