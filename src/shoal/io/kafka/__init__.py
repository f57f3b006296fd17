"""Kafka topics as source and sink. Guarantee: exactly once for readers of committed messages."""
