"""Releases and traces of z-anonymity, where each value is decided on its own."""
