"""The checkpoint of a query: its manifest, the files of states, the ledgers of its input and its results."""
