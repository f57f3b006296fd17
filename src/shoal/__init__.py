"""Publish a live stream without exposing the people in it.

The vocabulary: what the columns are (`Schema` and the domains of its attributes), what is promised
(`Policy` and its criteria), and `anonymize` for tables. The anonymizers are in
`shoal.algorithms`, the contract for authors of new ones is in `shoal.engine`.
``import shoal`` loads neither Arrow nor Numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.errors import ShoalError
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import Grid, Open, Path
from shoal.spec.policy import (
    BasicLikeness,
    Delay,
    DeltaDisclosure,
    DistinctLDiversity,
    EnhancedLikeness,
    EntropyLDiversity,
    KAnonymity,
    Policy,
    RangeLikeness,
    RecursiveLDiversity,
    SemanticLikeness,
    TCloseness,
    Window,
    ZAnonymity,
)
from shoal.spec.schema import Quasi, Schema, Sensitive

if TYPE_CHECKING:
    from shoal.run.frame import anonymize

__all__ = [
    "BasicLikeness",
    "Delay",
    "DeltaDisclosure",
    "DistinctLDiversity",
    "EnhancedLikeness",
    "EntropyLDiversity",
    "Grid",
    "Hierarchy",
    "KAnonymity",
    "Open",
    "Path",
    "Policy",
    "Quasi",
    "Range",
    "RangeLikeness",
    "RecursiveLDiversity",
    "Schema",
    "SemanticLikeness",
    "Sensitive",
    "ShoalError",
    "TCloseness",
    "Window",
    "ZAnonymity",
    "__version__",
    "anonymize",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "anonymize":
        from shoal.run.frame import anonymize

        return anonymize
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
