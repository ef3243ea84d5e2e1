"""Studies: questions about the engine alone, each answered in a process of its own."""
