"""The anonymizers. One file is one algorithm; whatever is in this folder is found by itself.

>>> find("castle")().clusters
50
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from shoal.engine import Anonymizer
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
            mend=did_you_mean(name, names()),
        )  # fmt: skip
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    class_name = "".join(part.capitalize() for part in name.split("-"))
    anonymizer: type[Anonymizer] = getattr(module, class_name)
    return anonymizer
