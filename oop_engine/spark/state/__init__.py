"""What a query keeps between micro-batches."""
