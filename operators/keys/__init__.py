"""Keys as numbers."""
