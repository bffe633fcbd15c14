"""Credential vending."""
