"""Kafka topics: read from committed offsets, each row written exactly once in transactions.

What is promised, and what it asks of the broker, is in ``docs/kafka.md``.
"""

from shoal.io.kafka.connector import CONNECTOR

__all__ = ["CONNECTOR"]
