"""The library of operators: one concept, one file; cards in ``operators/README.md``."""
