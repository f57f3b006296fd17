"""Compile kernels for a level of processors, so that machines of that level can share them.

A kernel is compiled for the processor at hand, and other processors can't be expected to run it.
One that is compiled for a level, such as ``x86-64-v3``, runs on every processor that has all
features of that level. What it decides is the same: a level changes which instructions are used,
and no kernel lets the compiler change the order of operations or join two of them.
"""

from __future__ import annotations

import llvmlite.binding
import numba

__all__ = ["HOST", "LEVELS", "compiled_for", "environment", "lacking", "usable"]

#: Stands for the processor at hand.
HOST = "host"
#: The levels, the best one first, and what a processor must have, in LLVM's words.
LEVELS = {
    "x86-64-v3": frozenset({
        "cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "bmi",
        "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave",
    }),
    "generic": frozenset(),
}  # fmt: skip


def lacking(level: str) -> list[str]:
    """Return the features of a level that this processor hasn't, or that Numba was told to avoid.

    >>> lacking("generic")
    []
    """
    has = llvmlite.binding.get_host_cpu_features()
    return sorted(
        name
        for name in LEVELS[level]
        if not has.get(name) or (name.startswith("avx") and not numba.config.ENABLE_AVX)
    )


def compiled_for() -> str | None:
    """Return the level that this process compiles for; None if it is some processor."""
    name, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES
    return name if name in LEVELS and features == "" else None


def usable() -> tuple[str, ...]:
    """Return the levels whose kernels this process may run, the best one first.

    Who tells Numba what to compile for gets nothing else.
    """
    if numba.config.CPU_NAME is None and numba.config.CPU_FEATURES is None:
        return tuple(level for level in LEVELS if not lacking(level))
    chosen = compiled_for()
    return () if chosen is None else (chosen,)


def environment(level: str) -> dict[str, str]:
    """Return the variables that have a process compile for a level.

    >>> environment("generic")
    {'NUMBA_CPU_NAME': 'generic', 'NUMBA_CPU_FEATURES': ''}
    """
    return {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
