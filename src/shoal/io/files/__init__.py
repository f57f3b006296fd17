"""Files and folders: each row exactly once in a resumable output, whole lines in any other.

What a file must be like to be read again or resumed is in ``docs/files.md``.
"""

from shoal.io.files.connector import CONNECTOR

__all__ = ["CONNECTOR"]
