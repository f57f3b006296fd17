"""Digests of decisions; as a program, those of an anonymizer and streams read from stdin."""

from __future__ import annotations

import hashlib
import pickle
import sys

from shoal.engine.base import Decisions
from shoal.testing.streams import play

__all__ = ["digest"]


def digest(decisions: Decisions) -> str:
    """Return a digest of every bit of decisions."""
    sha = hashlib.sha256()
    for array in decisions:
        sha.update(f"{array.dtype.str}{array.shape}".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


if __name__ == "__main__":
    anonymizer, streams = pickle.load(sys.stdin.buffer)
    for stream in streams:
        print(digest(play(anonymizer, stream)))
