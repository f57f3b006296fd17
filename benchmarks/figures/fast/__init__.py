"""The figures of FAST (parallel FADS)."""
