"""Sources, one a file."""
