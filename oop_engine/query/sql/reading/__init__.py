"""Reading SQL: tokens, statements, and mistakes with their place."""
