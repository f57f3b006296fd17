"""One checker for each criterion.

To add one, write a module here with ``check(evidence, criterion) -> list[Verdict]``, decorated with
`checks`; every module of this package is imported. A criterion without a checker is reported as
unverifiable. For a criterion of your own, decorate a function anywhere.
"""

from __future__ import annotations

import importlib
import pkgutil

from shoal.audit.criteria.registry import Checker, checker_of, checks

__all__ = ["Checker", "checker_of", "checks"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
