"""Tidegate: a managing catalog for catalog-managed Delta tables."""

__version__ = "0.1.0"
