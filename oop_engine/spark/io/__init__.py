"""Sources in segments, DataFrames, and sinks: where tuples come from and results go."""
