"""Metrics of z-anonymity."""
