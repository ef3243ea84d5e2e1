"""Letters: dead letters in a folder, and those that are fed again."""
