"""Benchmarks: what the catalog does in a second, as a share of what this machine can do at all. See `--help`."""
