"""Files to begin with, for parts of one's own."""
