"""What TIDE reaches beside the others: ``python -m benchmarks.tide``."""
