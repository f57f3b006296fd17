"""``shoal check``."""
