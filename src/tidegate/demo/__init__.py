"""The demo: a small shop whose orders flow through Spark into tables of the catalog."""
