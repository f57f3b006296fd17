"""z-anonymity from file to file, beside the pass-through; audited, and beside what a model says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import runs
from benchmarks.events_data import LEVELS, Case, Stream, paths, plain
from benchmarks.measure import interleaved
from benchmarks.passthrough import PassThroughCells, cell_by_cell
from shoal.algorithms.z_anonymity import ZAnonymizer
from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.audit import audit
from shoal.cli.model.sample import Columns, read_sample
from shoal.engine.base import Anonymizer
from shoal.metrics import Summary
from shoal.metrics.z.exposure import value_exposure
from shoal.models.z import choose, k_anonymity
from shoal.spec.policy import Policy, Window, ZAnonymity

__all__ = ["MOST_TIMES", "of_case", "of_paths", "pass_through", "publish"]

#: At most this many times the time of the pass-through.
MOST_TIMES = 2.0


def publish(
    case: Case,
    z: int,
    output: Path,
    *,
    anonymizer: Anonymizer | None = None,
    pseudonyms: bool = False,
    trace: Path | None = None,
    watch: Callable[[Summary], None] | None = None,
) -> Summary:
    """Publish a file, and say what came of it."""
    policy = Policy(ZAnonymity(z), window=case.window)
    return _run(case, anonymizer or ZAnonymizer(), policy, output, pseudonyms, trace, watch)


def pass_through(case: Case, output: Path, *, pseudonyms: bool = False) -> Summary:
    """The same way of the data, with nothing to decide."""
    return _run(case, PassThroughCells(), cell_by_cell(case.window), output, pseudonyms)


def _run(
    case: Case,
    anonymizer: Anonymizer,
    policy: Policy,
    output: Path,
    pseudonyms: bool,
    trace: Path | None = None,
    watch: Callable[[Summary], None] | None = None,
) -> Summary:
    rotate = case.window.seconds or float(case.window.rows)
    looks = Publish(pseudonym=Pseudonym(rotate)) if pseudonyms else Publish()

    return runs.run(
        case.workload, anonymizer, policy, output, looks=looks, trace=trace, watch=watch
    )


# -- real events -----------------------------------------------------------------------------------


def of_case(
    case: Case, folder: Path, *, z: int, k: int, probability: float, repeats: int
) -> dict[str, Any]:
    """With and without pseudonyms, in turn with the pass-through; then once with a trace."""
    output = folder / "published-events.parquet"
    passing, ours, passing_named, ours_named = interleaved(
        repeats,
        partial(pass_through, case, output),
        partial(publish, case, z, output),
        partial(pass_through, case, output, pseudonyms=True),
        partial(publish, case, z, output, pseudonyms=True),
    )
    n = case.workload.n_rows
    speeds = {
        name: {
            "pass-through": limit.rate(n).as_dict(),
            "z-anonymity": own.rate(n).as_dict(),
            "ratio": own.per(limit).as_dict(),
            "met": own.per(limit).median <= MOST_TIMES,
        }
        for name, limit, own in (
            ("without", passing, ours), ("with", passing_named, ours_named),
        )
    }  # fmt: skip
    return {
        "title": case.title,
        "n_rows": n,
        "target": MOST_TIMES,
        "pseudonyms": speeds,
        **_judged(case, folder, z=z, k=k),
        **_modelled(case, z=z, k=k, probability=probability),
    }


def _judged(case: Case, folder: Path, *, z: int, k: int) -> dict[str, Any]:
    """What the audit says of a run with a trace, and how many subjects are k-anonymous in it."""
    output, lines = folder / "published-events.parquet", folder / "published-trace.parquet"
    summary = publish(case, z, output, trace=lines)
    assert summary.cells is not None
    published, trace = pq.read_table(output), pq.read_table(lines)
    original = pq.read_table(case.workload.path)
    output.unlink()
    lines.unlink()
    policy, schema = Policy(ZAnonymity(z), window=case.window), case.workload.schema
    report = audit(schema, policy, published, trace=trace, original=original)
    exposure = value_exposure(schema, policy, original, trace, k=k)
    return {
        "published": summary.cells.published,
        "verdict": report.verdict,
        "verdicts": {one.name: one.verdict for one in report.verdicts},
        "n_windows": len(exposure.n_subjects),
        "k_anonymous": exposure.mean(exposure.k_anonymous),
    }


def _modelled(case: Case, *, z: int, k: int, probability: float) -> dict[str, Any]:
    """What the model makes of the events, and which z it would have chosen."""
    schema, window = case.workload.schema, case.window
    assert schema.subject is not None
    columns = Columns(schema.subject, tuple(schema.quasi), schema.time)
    in_rows = window.seconds is None
    sample = read_sample(
        str(case.workload.path), columns, rows=case.workload.n_rows, in_rows=in_rows,
        from_format=None,
    )  # fmt: skip
    choice = choose(
        sample.events, window.seconds or float(window.rows), k=k, probability=probability
    )
    return {
        "n_subjects": choice.estimate.n_subjects,
        "modelled": k_anonymity(choice.estimate.scenario(z, k)).middle,
        "chosen": {
            "by_model": choice.by_model.z,
            "by_count": None if choice.by_count is None else choice.by_count.z,
        },
    }


# -- paths -----------------------------------------------------------------------------------------


def of_paths(
    stream: Stream, folder: Path, *, z: int, window: float, repeats: int
) -> dict[str, Any]:
    """Values that are paths, beside the pass-through and beside the same values without paths."""
    output = folder / "published-events.parquet"
    flat, ladders = (
        Case(of.__name__, of(stream, folder), Window(seconds=window)) for of in (plain, paths)
    )
    passing_flat, of_flat, passing, of_ladders = interleaved(
        repeats,
        partial(pass_through, flat, output),
        partial(publish, flat, z, output),
        partial(pass_through, ladders, output),
        partial(publish, ladders, z, output),
    )
    output.unlink()
    return {
        "n_rows": stream.n_rows,
        "levels": LEVELS,
        "rows_per_second": {
            name: {
                "pass-through": limit.rate(stream.n_rows).as_dict(),
                "z-anonymity": own.rate(stream.n_rows).as_dict(),
                "ratio": own.per(limit).as_dict(),
                "met": own.per(limit).median <= MOST_TIMES,
            }
            for name, limit, own in (
                ("flat", passing_flat, of_flat), ("ladders", passing, of_ladders),
            )
        },
        "target": MOST_TIMES,
        "ratio": of_ladders.per(of_flat).as_dict(),
    }  # fmt: skip
