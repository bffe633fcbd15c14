"""The database: one schema for SQLite and PostgreSQL, and the one thread that writes to it."""
