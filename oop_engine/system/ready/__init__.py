"""Machine code out of Numba's cache, called without Numba."""
