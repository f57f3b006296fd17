"""The engine of the R-tree family: held rows lie in the leaves of a tree and leave leaf by leaf."""
