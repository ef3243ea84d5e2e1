"""A graph cut into source chains and components, and its keys divided among subtasks and shards."""
