"""Build the domains of attributes from a job file."""

from __future__ import annotations

import dataclasses
from pathlib import Path as File

from shoal.errors import JobError, ParameterError, Problem
from shoal.job.form import WAYS, DomainForm, QuasiForm
from shoal.spec.hierarchy import Domain, Hierarchy, Range, read_hierarchy
from shoal.spec.ladder import AnyDomain, Grid, Open, Path

__all__ = ["Files", "quasi_domain", "sensitive_domain"]


class Files:
    """Read the files that a job names, relative to its folder, and keep their content."""

    def __init__(self, folder: File) -> None:
        self._folder = folder
        #: The content of the files, by name.
        self.read: dict[str, bytes] = {}

    def hierarchy(self, name: str) -> Hierarchy:
        """Read the file of a hierarchy."""
        path = self._folder / name
        # Read once: what is digested is what was parsed.
        data = read_hierarchy(path)
        hierarchy = Hierarchy.from_bytes(data, where=str(path))
        self.read[name] = data
        return hierarchy


def quasi_domain(key: str, spec: QuasiForm, files: Files) -> AnyDomain:
    """Return the domain of a quasi attribute; open if none is given."""
    if spec.levels is not None and spec.path is None:
        raise JobError(Problem(f"{key}.levels", "is for a path only"))
    ways = _given(spec)
    if ways == ["path"]:
        _refuse_step(key, spec)
        return _path(key, spec.path or "", spec.levels)
    if ways == ["grid"]:
        _refuse_step(key, spec)
        return _grid(key, spec.grid or [])
    domain = sensitive_domain(key, spec, files)
    return Open() if domain is None else domain


def sensitive_domain(key: str, spec: DomainForm, files: Files) -> Domain | None:
    """Return the domain of a sensitive attribute; None if it is open."""
    ways = _given(spec)
    if len(ways) > 1:
        known = [way for way in WAYS if way in type(spec).model_fields]
        choice = f"{', '.join(known[:-1])} and {known[-1]}"
        what = f"needs one of {choice}, or none if its values are open"
        fix = "For example { range = [0, 120], step = 1 }"
        raise JobError(Problem(key, what, ", ".join(ways), fix))
    if spec.range is None:
        _refuse_step(key, spec)
    elif len(spec.range) != 2:
        what = f"{len(spec.range)} items"
        raise JobError(Problem(f"{key}.range", "must be [lowest, highest]", what))
    else:
        return Range(spec.range[0], spec.range[1], step=spec.step)
    if spec.hierarchy is not None:
        return files.hierarchy(spec.hierarchy)
    if spec.values is not None:
        return Hierarchy.flat(spec.values, where=f"{key}.values")
    if isinstance(spec.mask, list):
        return Hierarchy.masked(spec.mask, where=f"{key}.mask")
    return None if spec.mask is None else Hierarchy.digits(spec.mask, where=f"{key}.mask")


def _refuse_step(key: str, spec: DomainForm) -> None:
    if spec.step is not None:
        raise JobError(Problem(f"{key}.step", "is for a range only"))


def _path(key: str, separator: str, levels: int | None) -> Path:
    if not separator:
        what = "must be the text between two parts"
        raise JobError(Problem(f"{key}.path", what, repr(separator), 'For example { path = "/" }'))
    return Path(separator) if levels is None else Path(separator, levels)


def _grid(key: str, given: list[str | int]) -> Grid:
    names, cells = given[:2], given[2:]
    sides = [side for side in cells if isinstance(side, int)]
    if len(names) < 2 or not all(isinstance(n, str) for n in names) or len(sides) < len(cells):
        raise JobError(
            Problem(
                f"{key}.grid",
                "must be the columns of latitude and longitude, then sides of cells in metres",
                f"{len(given)} items",
                'For example ["lat", "lon", 500, 1000, 5000]',
            )
        )
    latitude, longitude = (str(name) for name in names)
    try:
        return Grid(latitude, longitude, sides)
    except ParameterError as error:
        # In a job file the parts of a grid have no keys of their own.
        raise JobError(
            [dataclasses.replace(problem, key=f"{key}.grid") for problem in error.problems]
        ) from None


def _given(spec: DomainForm) -> list[str]:
    """Return the keys that give a domain, of those that are set."""
    return [way for way in WAYS if getattr(spec, way, None) is not None]
