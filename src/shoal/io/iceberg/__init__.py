"""Iceberg tables: each row is appended exactly once.

The number of rows that a job has published is committed with the rows, as a property of the
snapshot. A run that resumes reads it from the table, and doesn't append rows again that were
committed after its last checkpoint.
"""

from shoal.io.iceberg.connector import CONNECTOR

__all__ = ["CONNECTOR"]
