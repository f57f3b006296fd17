"""z-anonymity on Spark with several shards, each of which counts some of the values."""
