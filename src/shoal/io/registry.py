"""Find connectors, and choose the endpoint that a job and the command line ask for."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import shoal.io
from shoal.errors import JobError, Problem
from shoal.io.connector import Connector, InputEndpoint, OutputEndpoint
from shoal.io.files.connector import CONNECTOR as FILES
from shoal.io.files.connector import FileInput, FileOutput
from shoal.io.text.dialect import PLAIN

__all__ = ["connectors", "endpoint", "keys_of", "resolve_input", "resolve_output"]

Section = Literal["input", "output"]


def connectors() -> tuple[Connector, ...]:
    """Return all connectors: the modules and packages of `shoal.io` that define ``CONNECTOR``."""
    return _scan(tuple(shoal.io.__path__))


@functools.cache
def _scan(folders: tuple[str, ...]) -> tuple[Connector, ...]:
    modules = [
        importlib.import_module(f"shoal.io.{module.name}")
        for module in pkgutil.iter_modules(folders)
    ]
    return tuple(module.CONNECTOR for module in modules if hasattr(module, "CONNECTOR"))


def keys_of(section: Section) -> dict[str, tuple[Any, Any]]:
    """Return the keys of all connectors in a section of the job, each with type and default."""
    keys: dict[str, tuple[Any, Any]] = {}
    for connector in connectors():
        keys |= _keys(connector, section)
    return keys


@overload
def endpoint(section: Literal["input"], given: Mapping[str, Any], folder: Path) -> InputEndpoint:
    pass


@overload
def endpoint(section: Literal["output"], given: Mapping[str, Any], folder: Path) -> OutputEndpoint:
    pass


def endpoint(
    section: Section, given: Mapping[str, Any], folder: Path
) -> InputEndpoint | OutputEndpoint:
    """Return the endpoint that the keys of a section select; files by default.

    Raises
    ------
    JobError
        If a key doesn't go with the connector that is selected, or its value is wrong.
    """
    others = [found for found in connectors() if found is not FILES]
    chosen = next((found for found in others if found.key in given), FILES)
    problems = []
    for key in given:
        if key not in _keys(chosen, section):
            owner = next(found for found in [*others, FILES] if key in _keys(found, section))
            only = f"is for {owner.key} only"
            problems.append(
                Problem(key, only if chosen is FILES else f"can't be combined with {chosen.key}")
            )
    try:
        make = chosen.make_input if section == "input" else chosen.make_output
        made = make(given, folder)
        if not problems:
            return made
    except JobError as error:
        problems += error.problems
    raise JobError(replace(problem, key=f"{section}.{problem.key}") for problem in problems)


def resolve_input(
    job: InputEndpoint, path: str | None, form: str | None, *, follow: bool
) -> InputEndpoint:
    """Return the input of a job, or what the command line asks for instead.

    Another file is expected to be written as the job says.
    """
    source = job
    if path is not None:
        dialect = job.dialect if isinstance(job, FileInput) else PLAIN
        source = FileInput(path, dialect=dialect)
    return source.with_options(form, follow=follow)


def resolve_output(job: OutputEndpoint, path: str | None, form: str | None) -> OutputEndpoint:
    """Return the output of a job, or what the command line asks for instead."""
    if path is not None:
        # How a folder is cut into files stays as the job says.
        sink = replace(job, path=path, format=None) if isinstance(job, FileOutput) else None
        job = sink or FileOutput(path)
    return job.with_format(form)


def _keys(connector: Connector, section: Section) -> Mapping[str, tuple[Any, Any]]:
    return connector.input_keys if section == "input" else connector.output_keys
