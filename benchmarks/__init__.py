"""How fast the engine is: against the floor of the machine, and against its peers (see README.md)."""
