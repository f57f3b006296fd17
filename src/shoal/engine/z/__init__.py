"""The engines of z-anonymity: every value is decided by itself, when it arrives."""
