"""A graph cut into stages, and its keys divided among subtasks."""
