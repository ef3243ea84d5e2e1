"""Files: whole programs from file to file, beside DuckDB and Polars."""
