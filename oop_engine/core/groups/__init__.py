"""Keys of groups as numbers."""
