"""File formats: one module for each, and the registry that finds it by name."""
