"""``shoal compare``."""
