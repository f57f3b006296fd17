"""``shoal init``."""
