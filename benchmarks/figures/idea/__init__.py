"""The figures of IDEA (incomplete streams)."""
