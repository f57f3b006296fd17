"""Compute a digest of the code that decides what is published.

A killed run repeats its last decisions when it resumes. Other code might decide otherwise about
rows that are published already, so a resume compares this digest.
"""

from __future__ import annotations

import ast
import secrets
from functools import cache
from pathlib import Path

from shoal.engine.sources import NOT_COMPILED, closure, digest_of

__all__ = ["deciding_modules", "decision_digest"]

#: What a release depends on, whatever the algorithm and the source are.
ROOTS = ("shoal.run.core", "shoal.arrow.publishing")
#: What decides nothing though it is imported: messages, counts, the cache of compiled kernels, and
#: what reads and writes files under format numbers of their own.
NOT_DECIDING = (
    "shoal.errors", "shoal.events", "shoal.metrics", "shoal.io", "shoal.run.state",
    *NOT_COMPILED,
)  # fmt: skip


def deciding_modules(*modules: str) -> list[str]:
    """Return the names of all modules that can change a decision, in order.

    Parameters
    ----------
    modules
        Those of the algorithm and of the source: how rows are read decides as well.
    """
    return sorted(_deciding(modules))


def decision_digest(*modules: str) -> str:
    """Return a digest of all code that can change a decision, without comments and docstrings.

    Parameters
    ----------
    modules
        As above.
    """
    files = _deciding(modules)
    digest = digest_of(files, _meaning)
    if not files.keys() >= set(modules):
        # What was typed in has no file to compare, so it never is the same.
        digest += secrets.token_hex(8)
    return digest


@cache
def _meaning(source: bytes) -> bytes:
    """Return a form of a source that has no comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            del node.body[0]
    return ast.dump(tree).encode()


def _deciding(modules: tuple[str, ...]) -> dict[str, Path]:
    return closure([*ROOTS, *modules], NOT_DECIDING)
