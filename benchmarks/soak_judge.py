"""What was seen from outside while a job ran for long, and whether it stayed flat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from benchmarks.markdown import table
from benchmarks.soak_check import Ledger

__all__ = ["Judgement", "Moment", "Verdict", "judge", "summary_text"]

#: By how much of its mean memory may grow in the second half, by the line that fits it best.
GROWTH = 0.05
#: By how many handles a moment may differ: a checkpoint that is being written is one more file.
HANDLES = 2
#: By how much the largest lag, or the largest state, may exceed that of the first half.
MORE = 1.25
#: The first share of a run is warming up: queues and pools are filled once.
WARM = 0.1


@dataclass(frozen=True)
class Moment:
    """One look at the job and its topics."""

    seconds: float
    #: Resident memory of the job, in bytes.
    resident: int
    handles: int
    #: Rows that are in the input and not yet in the output.
    waiting: int
    #: Rows that a reader of the output has seen.
    n_out: int
    #: Bytes of the checkpoints and of the journal on the disk.
    checkpoint_bytes: int
    journal_bytes: int


@dataclass(frozen=True)
class Verdict:
    """One question, and its answer."""

    name: str
    kept: bool
    told: str


@dataclass(frozen=True)
class Judgement:
    """All questions."""

    verdicts: tuple[Verdict, ...]

    @property
    def kept(self) -> bool:
        return all(verdict.kept for verdict in self.verdicts)

    def as_dict(self) -> dict[str, Any]:
        return {"kept": self.kept, "verdicts": [asdict(verdict) for verdict in self.verdicts]}


def judge(moments: Sequence[Moment], ledger: Ledger, n_fed: int, exit_code: int) -> Judgement:
    """Judge a whole soak: the first half, without its warming up, against the second."""
    arrays = {f.name: np.array([getattr(m, f.name) for m in moments]) for f in fields(Moment)}
    length = arrays["seconds"][-1]
    later = arrays["seconds"] >= length / 2
    earlier = (arrays["seconds"] >= WARM * length) & ~later
    return Judgement(
        (
            _rows(ledger, n_fed, exit_code),
            _memory(arrays["seconds"][later], arrays["resident"][later]),
            _handles(arrays["handles"], earlier, later),
            _no_more("lag", "rows", arrays["waiting"], earlier, later),
            _no_more(
                "state on disk", "bytes",
                arrays["checkpoint_bytes"] + arrays["journal_bytes"], earlier, later,
            ),
        )
    )  # fmt: skip


def _rows(ledger: Ledger, n_fed: int, exit_code: int) -> Verdict:
    told = (
        f"{n_fed:,} rows in, {ledger.n_rows:,} out, {ledger.n_doubled:,} twice, "
        f"{ledger.n_missing - ledger.n_suppressed:,} missing, {ledger.n_suppressed:,} suppressed; "
        f"exit code {exit_code}"
    )
    return Verdict(
        "every row once", ledger.is_right and ledger.n_rows == n_fed and exit_code == 0, told
    )


def _memory(seconds: Any, resident: Any) -> Verdict:
    slope = float(np.polyfit(seconds, resident, 1)[0])
    growth = slope * (seconds[-1] - seconds[0]) / resident.mean()
    told = (
        f"{resident.mean() / 2**20:,.0f} MiB in the second half, at most "
        f"{resident.max() / 2**20:,.0f}; {100 * growth:+.1f} % from its beginning to its end"
    )
    return Verdict("memory", bool(growth <= GROWTH), told)


def _handles(handles: Any, earlier: Any, later: Any) -> Verdict:
    before, after = int(handles[earlier].max()), int(handles[later].max())
    told = f"at most {after} open in the second half, {before} in the first"
    return Verdict("file handles", after <= before + HANDLES, told)


def _no_more(name: str, unit: str, values: Any, earlier: Any, later: Any) -> Verdict:
    before, after = int(values[earlier].max()), int(values[later].max())
    told = f"at most {after:,} {unit} in the second half, {before:,} in the first"
    return Verdict(name, after <= MORE * before, told)


def summary_text(moments: Sequence[Moment], judgement: Judgement) -> str:
    """The verdict as Markdown."""
    last = moments[-1]
    rows = [[v.name, "kept" if v.kept else "**not kept**", v.told] for v in judgement.verdicts]
    return (
        f"{last.n_out:,} rows in {last.seconds / 60:.0f} minutes, "
        f"{last.n_out / last.seconds:,.0f} a second, with other work on the machine; seen every "
        f"{last.seconds / len(moments):.1f} s from outside. "
        f"All in all: {'kept' if judgement.kept else '**not kept**'}.\n\n"
        + table(["", "", "what was seen"], rows, numbers=False)
    )
