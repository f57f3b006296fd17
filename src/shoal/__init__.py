"""Publish a live stream without exposing the people in it.

The names below are the public ones. They are imported when they are first used, so that
``import shoal`` is quick and loads neither Arrow nor Numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.algorithms.burel import Burel as Burel
    from shoal.algorithms.burel_w import BurelW as BurelW
    from shoal.algorithms.castle import Castle as Castle
    from shoal.algorithms.d_mondrian import DMondrian as DMondrian
    from shoal.algorithms.dynamic_group import DynamicGroup as DynamicGroup
    from shoal.algorithms.fads import Fads as Fads
    from shoal.algorithms.fast import Fast as Fast
    from shoal.algorithms.idea import Idea as Idea
    from shoal.algorithms.iot import Iot as Iot
    from shoal.algorithms.k_varp import KVarp as KVarp
    from shoal.algorithms.l_mondrian import LMondrian as LMondrian
    from shoal.algorithms.min_delay import MinDelay as MinDelay
    from shoal.algorithms.mondrian import Mondrian as Mondrian
    from shoal.algorithms.sabre_ak import SabreAk as SabreAk
    from shoal.algorithms.sabre_knn import SabreKnn as SabreKnn
    from shoal.algorithms.sabre_w import SabreW as SabreW
    from shoal.algorithms.t_incognito import TIncognito as TIncognito
    from shoal.algorithms.t_incognito_w import TIncognitoW as TIncognitoW
    from shoal.algorithms.t_mondrian import TMondrian as TMondrian
    from shoal.algorithms.t_mondrian_w import TMondrianW as TMondrianW
    from shoal.algorithms.tree_basic import TreeBasic as TreeBasic
    from shoal.algorithms.tree_density import TreeDensity as TreeDensity
    from shoal.algorithms.tree_full import TreeFull as TreeFull
    from shoal.algorithms.z_anonymity import ZAnonymizer as ZAnonymizer
    from shoal.engine.base import Anonymizer as Anonymizer
    from shoal.engine.base import BoxEngine as BoxEngine
    from shoal.engine.base import Decisions as Decisions
    from shoal.engine.base import Engine as Engine
    from shoal.engine.space import Codes as Codes
    from shoal.engine.space import Space as Space
    from shoal.errors import ShoalError as ShoalError
    from shoal.run.frame import anonymize as anonymize
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
    from shoal.spec.policy import KAnonymity as KAnonymity
    from shoal.spec.policy import Policy as Policy
    from shoal.spec.policy import RangeLikeness as RangeLikeness
    from shoal.spec.policy import RecursiveLDiversity as RecursiveLDiversity
    from shoal.spec.policy import SemanticLikeness as SemanticLikeness
    from shoal.spec.policy import TCloseness as TCloseness
    from shoal.spec.policy import Window as Window
    from shoal.spec.policy import ZAnonymity as ZAnonymity
    from shoal.spec.schema import Quasi as Quasi
    from shoal.spec.schema import Schema as Schema
    from shoal.spec.schema import Sensitive as Sensitive

__version__ = "0.1.0"

_HOMES = {
    "Anonymizer": "shoal.engine.base",
    "BasicLikeness": "shoal.spec.policy",
    "BoxEngine": "shoal.engine.base",
    "Burel": "shoal.algorithms.burel",
    "BurelW": "shoal.algorithms.burel_w",
    "Castle": "shoal.algorithms.castle",
    "Codes": "shoal.engine.space",
    "DMondrian": "shoal.algorithms.d_mondrian",
    "Decisions": "shoal.engine.base",
    "Delay": "shoal.spec.policy",
    "DeltaDisclosure": "shoal.spec.policy",
    "DistinctLDiversity": "shoal.spec.policy",
    "DynamicGroup": "shoal.algorithms.dynamic_group",
    "Engine": "shoal.engine.base",
    "EnhancedLikeness": "shoal.spec.policy",
    "EntropyLDiversity": "shoal.spec.policy",
    "Fads": "shoal.algorithms.fads",
    "Fast": "shoal.algorithms.fast",
    "Grid": "shoal.spec.ladder",
    "Hierarchy": "shoal.spec.hierarchy",
    "Idea": "shoal.algorithms.idea",
    "Iot": "shoal.algorithms.iot",
    "KAnonymity": "shoal.spec.policy",
    "KVarp": "shoal.algorithms.k_varp",
    "LMondrian": "shoal.algorithms.l_mondrian",
    "MinDelay": "shoal.algorithms.min_delay",
    "Mondrian": "shoal.algorithms.mondrian",
    "Open": "shoal.spec.ladder",
    "Path": "shoal.spec.ladder",
    "Policy": "shoal.spec.policy",
    "Quasi": "shoal.spec.schema",
    "Range": "shoal.spec.hierarchy",
    "RangeLikeness": "shoal.spec.policy",
    "RecursiveLDiversity": "shoal.spec.policy",
    "SabreAk": "shoal.algorithms.sabre_ak",
    "SabreKnn": "shoal.algorithms.sabre_knn",
    "SabreW": "shoal.algorithms.sabre_w",
    "Schema": "shoal.spec.schema",
    "SemanticLikeness": "shoal.spec.policy",
    "Sensitive": "shoal.spec.schema",
    "ShoalError": "shoal.errors",
    "Space": "shoal.engine.space",
    "TCloseness": "shoal.spec.policy",
    "TIncognito": "shoal.algorithms.t_incognito",
    "TIncognitoW": "shoal.algorithms.t_incognito_w",
    "TMondrian": "shoal.algorithms.t_mondrian",
    "TMondrianW": "shoal.algorithms.t_mondrian_w",
    "TreeBasic": "shoal.algorithms.tree_basic",
    "TreeDensity": "shoal.algorithms.tree_density",
    "TreeFull": "shoal.algorithms.tree_full",
    "Window": "shoal.spec.policy",
    "ZAnonymity": "shoal.spec.policy",
    "ZAnonymizer": "shoal.algorithms.z_anonymity",
    "anonymize": "shoal.run.frame",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
