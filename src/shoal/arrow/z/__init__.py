"""Releases and traces of z-anonymity, where every value is published by itself."""
