"""Engines: the contract of an anonymizer, and the families of engines that implement it.

The names below are those that the author of an algorithm needs. They are imported when they are
first used, so that importing one module of this package doesn't load the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.engine.base import Anonymizer, BoxEngine, Decisions, Engine
    from shoal.engine.space import Codes, Space

__all__ = ["Anonymizer", "BoxEngine", "Codes", "Decisions", "Engine", "Space"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "space" if name in ("Codes", "Space") else "base"
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
