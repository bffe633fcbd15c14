"""Background work of a server: what the catalog owes its tables, done beside the requests."""
