"""Write the recommended job: the job file as it is, with another promise or algorithm."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Table

from shoal.compare.cells import Cell
from shoal.compare.words import wrapped
from shoal.job.file import Job

__all__ = ["best_job"]


def best_job(
    text: str, job: Job, cell: Cell, policy: Mapping[str, Any], reason: Sequence[str], folder: Path
) -> str:
    """Return the text of a job file with the promise and the algorithm of a cell.

    Comments and all other settings stay. Of another algorithm the knobs are the defaults, since
    those of the job's mean nothing to it.

    Parameters
    ----------
    text, job
        The job file, and the job that it says.
    cell
        The algorithm and the policy.
    policy
        What the ``[policy]`` of the file says then.
    reason
        Why, in sentences; they become a comment at the top.
    folder
        Where the file will be: paths are relative to it.
    """
    document = tomlkit.parse(text)
    section: Any = document["policy"]
    for key, value in policy.items():
        if section.get(key) != value:
            _put(section, key, value)
    if cell.anonymizer != job.anonymizer:
        algorithm: Any = document["algorithm"]
        algorithm["name"] = cell.anonymizer.name
        for knob in [knob for knob in algorithm if knob not in ("name", "loss")]:
            del algorithm[knob]
    head = wrapped(f"Recommended by `shoal compare`. {' '.join(reason)}", "# ", "# ")
    written = "\n".join([*head, "", tomlkit.dumps(document)])
    made = Job.parse(written, folder=folder)
    assert dataclasses.replace(made.anonymizer) == cell.anonymizer
    return written


def _put(section: Any, key: str, value: Any) -> None:
    """Set a value; inside of a table one by one, so that comments and order stay."""
    if isinstance(value, dict) and isinstance(section.get(key), Table | InlineTable):
        for inner, part in value.items():
            if section[key].get(inner) != part:
                _put(section[key], inner, part)
        return
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        table.update(value)
        value = table
    section[key] = value
