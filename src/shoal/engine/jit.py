"""``@kernel``: the one way a function of this package is compiled."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

#: Whether kernels run as plain Python. Then Numba isn't imported, which takes seconds.
IS_PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "").strip() not in ("", "0")
if not IS_PLAIN:
    import numba

    from shoal.engine.cache import keep
    from shoal.engine.linking import SeparateCompiler

__all__ = ["IS_PLAIN", "inlined", "kernel", "on_demand", "specialized"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function at its first call: no Python objects, no GIL, cached by its sources."""
    return _compiled(function)


def specialized(function: F) -> F:
    """Compile a function once for each constant that it is called with, such as an offset of 0.

    What is known about an index lets the compiler vectorize a loop. Other kernels have one form,
    whether an argument is a constant or not.
    """
    return _compiled(function, keeps_constants=True)


def inlined(function: F) -> F:
    """Compile a small function that is called often, and copy it into its callers.

    A call counts references to every array argument, which takes longer than a small function
    does; a copy counts none. Its callers take longer to compile.
    """
    return _compiled(function, inline=True)


def on_demand(function: F) -> F:
    """Compile a function when a kernel first calls it, and not with the kernels that mention it.

    It is for what few jobs need, such as rare criteria. It must return a number or nothing.
    """
    return _compiled(function, is_on_demand=True)


def _compiled(
    function: F,
    *,
    inline: bool = False,
    keeps_constants: bool = False,
    is_on_demand: bool = False,
) -> F:
    if IS_PLAIN:
        return function
    options = {"pipeline_class": SeparateCompiler, "no_cfunc_wrapper": True, "nogil": True}
    compiled = numba.njit(forceinline=inline, **options)(function)
    if not numba.config.DISABLE_JIT:
        keep(compiled, keeps_constants=keeps_constants, on_demand=is_on_demand)
    return cast(F, compiled)
