"""How partial aggregates are kept, one store a file."""
