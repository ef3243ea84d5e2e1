"""Knowledge of servers that several sources and sinks share."""
