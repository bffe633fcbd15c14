"""Rows: Delta's columns as Arrow's, and scans. All of this needs pyarrow, and nothing else of the client does."""
