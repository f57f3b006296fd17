"""The anonymizers. One file is one algorithm; whatever is in this folder is found by itself.

>>> find("castle")().clusters
50
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from shoal.engine.base import Anonymizer
from shoal.errors import ParameterError, did_you_mean

__all__ = ["find", "names"]


@cache
def names() -> tuple[str, ...]:
    """The names of all anonymizers, in alphabetical order."""
    return tuple(
        sorted(
            module.name.replace("_", "-")
            for module in pkgutil.iter_modules(__path__)
            if not module.name.startswith("_")
        )
    )


def find(name: str) -> type[Anonymizer]:
    """The anonymizer of that name."""
    if name not in names():
        raise ParameterError(
            "algorithm.name", "isn't the name of an anonymizer", got=repr(name),
            fix=did_you_mean(name, names()),
        )  # fmt: skip
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    return next(
        found
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Anonymizer) and _is_called(found, name)
    )


def _is_called(anonymizer: type[Anonymizer], name: str) -> bool:
    return getattr(anonymizer, "name", None) == name
