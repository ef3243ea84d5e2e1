"""The checkpoint of a query: its manifest, the files of states, the ledgers of what it has read and written."""
