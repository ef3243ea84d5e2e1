"""Windows folded on the bound: tuples above it are held, those below are partial aggregates of slices."""
