"""``shoal spark``."""
