"""Publish a live stream without exposing the people in it.

    schema = Schema("name", [Quasi("age", Range(0, 120))])       what the columns are
    policy = Policy(KAnonymity(10), delay=Delay(rows=1000))      what is promised
    anonymize(frame, schema, policy).frame                       a whole table
    Stream(schema, policy).push(rows)                            row by row; AsyncStream
    run("job.toml")                                              a job file; Job.load reads one
    audit(schema, policy, published, trace=…, original=…)        is the promise kept?
    compare(frame, schema, policies, algorithms)                 which one loses least?
    attack(…), report("job.toml", published, trace=…, original=…)   risk, attacks and utility

Domains of attributes: Range, Hierarchy; for z-anonymity also Open, Path, Grid.
Criteria: KAnonymity, DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity, TCloseness,
EuclideanCloseness, VariationalCloseness, JensenShannonCloseness, BasicLikeness, EnhancedLikeness,
SemanticLikeness, RangeLikeness, DeltaDisclosure, ZAnonymity.
Also: Sensitive, Window, Pseudonym, Result, ShoalError. Each has a help of its own, such as
help(shoal.Policy). The anonymizers are in shoal.algorithms; docs/python.md has examples.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from shoal.errors import ShoalError as ShoalError
from shoal.spec.hierarchy import Hierarchy as Hierarchy
from shoal.spec.hierarchy import Range as Range
from shoal.spec.ladder import Grid as Grid
from shoal.spec.ladder import Open as Open
from shoal.spec.ladder import Path as Path
from shoal.spec.policy import BasicLikeness as BasicLikeness
from shoal.spec.policy import Delay as Delay
from shoal.spec.policy import DeltaDisclosure as DeltaDisclosure
from shoal.spec.policy import DistinctLDiversity as DistinctLDiversity
from shoal.spec.policy import EnhancedLikeness as EnhancedLikeness
from shoal.spec.policy import EntropyLDiversity as EntropyLDiversity
from shoal.spec.policy import EuclideanCloseness as EuclideanCloseness
from shoal.spec.policy import JensenShannonCloseness as JensenShannonCloseness
from shoal.spec.policy import KAnonymity as KAnonymity
from shoal.spec.policy import Policy as Policy
from shoal.spec.policy import RangeLikeness as RangeLikeness
from shoal.spec.policy import RecursiveLDiversity as RecursiveLDiversity
from shoal.spec.policy import SemanticLikeness as SemanticLikeness
from shoal.spec.policy import TCloseness as TCloseness
from shoal.spec.policy import VariationalCloseness as VariationalCloseness
from shoal.spec.policy import Window as Window
from shoal.spec.policy import ZAnonymity as ZAnonymity
from shoal.spec.schema import Quasi as Quasi
from shoal.spec.schema import Schema as Schema
from shoal.spec.schema import Sensitive as Sensitive

if TYPE_CHECKING:
    from shoal.arrow.pseudonyms import Pseudonym as Pseudonym
    from shoal.compare.comparing import compare as compare
    from shoal.job.attacking import attack as attack
    from shoal.job.auditing import audit as audit
    from shoal.job.file import Job as Job
    from shoal.job.reporting import report as report
    from shoal.job.running import run as run
    from shoal.run.async_stream import AsyncStream as AsyncStream
    from shoal.run.frame import anonymize as anonymize
    from shoal.run.result import Result as Result
    from shoal.run.stream import Stream as Stream

__version__ = "0.1.0"

# There is no __all__: with one, help(shoal) would print the help of every class.

#: Where names are that are imported when they are first used.
_LAZY = {
    "AsyncStream": "shoal.run.async_stream",
    "Job": "shoal.job.file",
    "Pseudonym": "shoal.arrow.pseudonyms",
    "Result": "shoal.run.result",
    "Stream": "shoal.run.stream",
    "anonymize": "shoal.run.frame",
    "attack": "shoal.job.attacking",
}
#: Packages that can be called, and where the functions of their names are.
_CALLABLE = {
    "audit": "shoal.job.auditing",
    "compare": "shoal.compare.comparing",
    "report": "shoal.job.reporting",
    "run": "shoal.job.running",
}


class _CallablePackage(ModuleType):
    """A package that is also a function: `shoal.run` has `shoal.run.pipeline`, and runs a job."""

    def _function(self) -> Any:
        name = self.__name__.rpartition(".")[2]
        return getattr(importlib.import_module(_CALLABLE[name]), name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._function()(*args, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function())


class _Root(ModuleType):
    """The package itself; it makes packages callable when they are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _CALLABLE and type(value) is ModuleType:
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Root


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in _CALLABLE:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    public = (name for name in globals() if name[0].isupper() and name != "TYPE_CHECKING")
    return sorted({*public, *_LAZY, *_CALLABLE, "__version__"} - {"Any", "ModuleType"})
