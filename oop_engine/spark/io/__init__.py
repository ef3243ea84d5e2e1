"""Where tuples come from and results go."""
