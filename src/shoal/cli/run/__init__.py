"""``shoal run``."""
