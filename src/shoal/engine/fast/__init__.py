"""The engine of FAST: workers that decide at once, each among its own rows, in rounds."""
