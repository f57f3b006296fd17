"""Whether a group keeps a policy, straight from the definitions, in plain slow Python.

Nothing here shares code with `shoal.engine.kernels`, whose errors it has to find. To add a
criterion, write a module here with a function that is decorated with `defines`; every module of
this package is imported. For a criterion of your own, decorate a function anywhere.
"""

from __future__ import annotations

import importlib
import pkgutil

from shoal.testing.definitions.registry import Definition, Group, broken, defines, examples

__all__ = ["Definition", "Group", "broken", "defines", "examples"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
