"""Find the kernels that a class may call, directly or not, without compiling any."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from shoal.engine.on_demand import is_on_demand

__all__ = ["kernels_of"]


def kernels_of(start: type) -> set[tuple[str, str]]:
    """Return the kernels that the methods of a class may call, by module and name.

    It follows names: those of functions, classes and kernels that a function mentions, and those
    of the methods of a class. Some kernels may be among them that no run calls; those on demand,
    and what only they call, aren't.
    """
    found: set[tuple[str, str]] = set()
    seen: set[int] = set()
    waiting: list[Any] = [start]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type):
            waiting += _methods(value)
            continue
        function = getattr(value, "py_func", value)
        if function is not value:
            if is_on_demand(function):
                continue
            found.add((function.__module__, function.__qualname__))
        waiting += _mentioned(function)
    return found


def _methods(kind: type) -> Iterator[FunctionType]:
    for base in kind.__mro__:
        for part in vars(base).values():
            inner = getattr(part, "fget", None) or getattr(part, "__func__", part)
            if isinstance(inner, FunctionType):
                yield inner


def _mentioned(function: FunctionType) -> Iterator[Any]:
    """Yield the functions, classes and kernels of this package that a function mentions."""
    names, space = set(_names(function.__code__)), function.__globals__
    for name in names:
        value = space.get(name)
        inside = (vars(value).get(other) for other in names) if _is_module(value) else (value,)
        for one in inside:
            if hasattr(one, "py_func") or _is_ours(one):
                yield one


def _is_module(value: object) -> bool:
    return isinstance(value, ModuleType) and value.__name__.startswith("shoal.")


def _is_ours(value: object) -> bool:
    return isinstance(value, FunctionType | type) and value.__module__.startswith("shoal.")


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
