"""Window aggregation with revisions: of rows that may be taken back, and with versions of results."""
