"""Does ten times the stream cost ten times the time, and no more memory?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import child
from benchmarks.markdown import spread, table
from benchmarks.measure import Sample

__all__ = ["BOUNDED", "LINEAR", "tenfold", "text"]

#: Ten times the rows may take so much more than ten times the time, and so much more memory, before
#: it stops looking linear and bounded.
LINEAR, BOUNDED = 1.15, 1.25


def tenfold(
    algorithm: str, data: str, n_rows: int, folder: Path, *,
    k: int, delay: int, repeats: int, warm: int,
) -> dict[str, Any]:  # fmt: skip
    """A stream and one of ten times its length, each in processes of their own."""
    lengths = (n_rows, 10 * n_rows)
    for rows in (warm, *lengths):
        # The child must only find the file: making it would count as its memory.
        child.FILES[data](rows, folder)
    reports: dict[int, list[dict[str, Any]]] = {rows: [] for rows in lengths}
    for _ in range(repeats):
        for rows in lengths:
            reports[rows].append(
                child.call(algorithm, data, rows, folder, k=k, delay=delay, warm=warm)
            )

    def sample(rows: int, name: str) -> Sample:
        return Sample(tuple(float(report[name]) for report in reports[rows]))

    short, long = lengths
    time_ratio = sample(long, "seconds").per(sample(short, "seconds"))
    peak_ratio = sample(long, "peak").per(sample(short, "peak"))
    steady_ratio = sample(long, "steady").per(sample(short, "steady"))
    return {
        "algorithm": algorithm,
        "runs": [
            {
                "n_rows": rows,
                **{
                    name: sample(rows, name).as_dict()
                    for name in ("seconds", "peak", "growth", "steady")
                },
            }
            for rows in lengths
        ],
        "time_ratio": time_ratio.as_dict(),
        "peak_ratio": peak_ratio.as_dict(),
        "steady_ratio": steady_ratio.as_dict(),
        "linear": time_ratio.median <= 10 * LINEAR,
        "bounded": peak_ratio.median <= BOUNDED,
    }


def text(found: dict[str, Any]) -> str:
    """A table of both lengths, and the verdict."""
    rows = [
        [
            f"{one['n_rows']:,}",
            spread(one["seconds"]),
            *(f"{one[n]['median'] / 2**20:,.0f}" for n in ("peak", "growth", "steady")),
        ]
        for one in found["runs"]
    ]
    return (
        table(["rows", "s", "peak memory, MiB", "of it by the run", "second half"], rows)
        + f"\n\nTime: {spread(found['time_ratio'])} times, "
        + ("linear" if found["linear"] else "**not linear**")
        + f". Peak memory: {spread(found['peak_ratio'])} times (in the second half of the run: "
        + f"{spread(found['steady_ratio'])}), "
        + ("bounded." if found["bounded"] else "**not bounded**.")
    )
