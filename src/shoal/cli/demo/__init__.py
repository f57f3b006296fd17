"""``shoal demo``."""
