"""The engine of CASTLE: rows gather in open clusters, which leave when the time of a row is up."""
