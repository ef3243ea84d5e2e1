"""Values: which of them may go into a column, decided here for every door of the engine."""
