"""Parts of others: sources and sinks that somebody else wrote, and their usual mistakes, each named."""
