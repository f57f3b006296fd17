"""The same job on Apache Spark's Structured Streaming."""
