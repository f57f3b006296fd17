"""The anonymizers: one mechanism, one file. `registry` finds them.

``from shoal.algorithms import Castle`` imports the module of `Castle` and no other. Type checkers
read ``__init__.pyi``, which ``python -m tests.generated`` writes from the registry.

>>> from shoal.algorithms import Castle, find
>>> find("castle") is Castle
True
"""

from shoal.algorithms.registry import check_support, entries, find, names

__all__ = ["check_support", "find", "names"]


def __getattr__(name):  # type: ignore[no-untyped-def]
    for entry in entries():
        if entry.class_name == name:
            return entry.load()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():  # type: ignore[no-untyped-def]
    return sorted([*__all__, *(entry.class_name for entry in entries())])
