"""The true answer of a graph over tables, from the definitions: no operator runs."""
