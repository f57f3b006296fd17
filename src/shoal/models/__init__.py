"""Models that tell beforehand what a promise is worth; they run no engine."""
