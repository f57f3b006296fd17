"""Models that predict what a promise is worth, without running an engine."""
