"""A world with a seed: a disk that tears, sources that come again, processes that die, sleep and wake up."""
