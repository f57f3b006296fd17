"""The worked examples of the papers, on the slow twins."""
