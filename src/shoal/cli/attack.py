"""``shoal attack``: attack published data on purpose."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from shoal.attacks import find, names
from shoal.cli.terminal import Progress, print_result
from shoal.errors import ParameterError
from shoal.job.attacking import attack as make_attacks

__all__ = ["AttackOptions", "attack"]


@dataclass(frozen=True, slots=True)
class AttackOptions:
    """The options of the command."""

    original: str | None
    trace: Path | None
    attacks: str | None
    known: str | None
    control: float | None
    targets: int
    seed: int
    from_format: str | None
    as_json: bool


def attack(job_path: Path, published: str, options: AttackOptions) -> int:
    """Attack published data; return the exit code."""
    if options.original is None:
        raise ParameterError(
            "--original",
            "is missing: without the original input it is unknown whether an attack succeeds",
            fix="Give the input of the run",
        )
    chosen = _listed("--attacks", options.attacks)
    for name in chosen or ():
        # A wrong name is told before files are read.
        find(name)
    with Progress(quiet=options.as_json) as progress:
        n_attacks = len(names() if chosen is None else chosen)
        begun = 0

        def watch(what: str) -> None:
            nonlocal begun
            begun += what in names()
            progress.note(f"{what} … ({begun} of {n_attacks} attacks)" if begun else f"{what} …")

        progress.note("reading …")
        report = make_attacks(
            job_path,
            published,
            original=options.original,
            trace=options.trace,
            attacks=chosen,
            known=_listed("--known", options.known),
            control=options.control,
            targets=options.targets,
            seed=options.seed,
            format=options.from_format,
            watch=watch,
        )
    print_result(json.dumps(report.as_dict()) if options.as_json else str(report))
    return report.exit_code


def _listed(option: str, text: str | None) -> list[str] | None:
    """Return the names of a list with commas; None if the option isn't given."""
    if text is None:
        return None
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise ParameterError(
            option, "names nothing", fix="Separate names by commas, or leave it out"
        )
    return found
