"""Pages whose columns are made when they are read."""
