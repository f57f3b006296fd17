"""``@kernel``: the one way a function of this package is compiled.

Numba's own cache doesn't notice an edit in another file, so an old privacy predicate could keep
running inside a cached caller. The cache folder is therefore named by a hash of all the sources
that kernels are made of; where it can't be written, nothing is cached.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["inlined", "is_cold", "kernel", "sources_digest"]

F = TypeVar("F", bound=Callable[..., Any])

#: Folders of former versions that are left in place, so that two versions can be used in turn.
FORMER_VERSIONS_KEPT = 4


def kernel_sources() -> list[Path]:
    """The files whose code can get into a kernel: those that use this one, and named tuples."""
    package = Path(__file__).parents[1]
    return [
        path
        for path in sorted(package.rglob("*.py"))
        if path.parent.name == "kernels"
        or path.name == "space.py"
        or b"shoal.engine.jit" in path.read_bytes()
    ]


def sources_digest() -> str:
    """A digest of all code that can get into a kernel."""
    digest = hashlib.blake2b(digest_size=12)
    for path in kernel_sources():
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _cache_folder() -> Path | None:
    """The folder for compiled kernels of exactly these sources, or None if there can't be one."""
    base = os.environ.get("SHOAL_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    parent = Path(base).expanduser() / "shoal"
    folder = parent / f"kernels-{sources_digest()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The cache is code that will be run: only its owner may have written it.
        if folder.stat().st_uid != os.getuid() or not os.access(folder, os.W_OK):
            return None
        os.utime(folder)
        former = sorted(
            (path for path in parent.glob("kernels-*") if path != folder),
            key=lambda path: path.stat().st_mtime,
        )
        for path in former[: max(0, len(former) - FORMER_VERSIONS_KEPT)]:
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return None
    return folder


_folder = None if numba.config.DISABLE_JIT else _cache_folder()


def kernel(function: F) -> F:
    """Compile a function at its first call: no Python objects, no GIL, cached by source hash."""
    return _compiled(function, inline=False)


def inlined(function: F) -> F:
    """The same for a small function that is called over and over.

    A call counts references to every array that is handed over, which takes longer than a small
    function does; written into its callers, it counts none. They take longer to compile.
    """
    return _compiled(function, inline=True)


def _compiled(function: F, *, inline: bool) -> F:
    compiled = numba.njit(nogil=True, forceinline=inline)(function)
    if _folder is not None:
        # Numba takes the folder from its configuration when caching is switched on.
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(_folder)
        try:
            compiled.enable_caching()
        finally:
            numba.config.CACHE_DIR = before
    return cast(F, compiled)


def is_cold() -> bool:
    """Whether kernels will have to be compiled first, which takes about a minute."""
    if numba.config.DISABLE_JIT:
        return False
    return _folder is None or not any(_folder.rglob("*.nbi"))
