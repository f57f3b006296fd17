"""``shoal model``."""
