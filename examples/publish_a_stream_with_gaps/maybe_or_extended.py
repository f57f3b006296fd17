"""What becomes of a stream with gaps, if a gap maybe matches anything, or stands for everything?

The job is run twice, with `missing = "maybe"` as it says, and with `"extended"`. Run it with
`python examples/publish_a_stream_with_gaps/maybe_or_extended.py`.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv

from shoal.io import BadRow, open_sink, open_source
from shoal.job import Job

HERE = Path(__file__).parent
#: How a side is published that says nothing.
NOTHING = {"age": "[15, 90]", "sex": "*", "weight": "[40, 140]", "pulse": "[40, 120]"}


class Found(NamedTuple):
    """What was published: rows, their loss, cells without a label, and labels that say nothing."""

    rows: int
    loss: float | None
    missing: int
    empty_words: int


def refuse(bad: list[BadRow]) -> None:
    raise SystemExit(f"row {bad[0].row}: {bad[0].reason}")


def cells(table: pa.Table) -> Iterator[tuple[str, str | None]]:
    for column in NOTHING:
        for label in table[column].to_pylist():
            yield column, label or None


def publish(missing: str, target: Path) -> Found:
    """Run the job with this meaning of gaps."""
    text = (HERE / "job.toml").read_text(encoding="utf-8")
    job = Job.parse(text.replace('missing = "maybe"', f'missing = "{missing}"'), folder=HERE)
    with contextlib.closing(open_source(HERE / "readings.csv")) as source:
        summary = job.pipeline.run(source, partial(open_sink, target), on_bad=refuse).execute()
    published = list(cells(pa.csv.read_csv(target)))
    return Found(
        summary.n_published,
        summary.loss.published,
        sum(label is None for _, label in published),
        sum(label == NOTHING[column] for column, label in published),
    )


def some_that_lack_something(target: Path) -> list[str]:
    header, *lines = target.read_text(encoding="utf-8").splitlines()
    signs = (",,", NOTHING["weight"], NOTHING["pulse"])
    return [header, *[line for line in lines if any(sign in line for sign in signs)][:4]]


def main() -> dict[str, Found]:
    found: dict[str, Found] = {}
    print("missing      rows   loss  missing cells  cells that say nothing")
    with tempfile.TemporaryDirectory() as folder:
        for missing in ("maybe", "extended"):
            target = Path(folder) / f"{missing}.csv"
            one = found[missing] = publish(missing, target)
            print(
                f"{missing:<10} {one.rows:>6}  {one.loss:.3f}  {one.missing:>13}  "
                f"{one.empty_words:>22}"
            )
            for line in some_that_lack_something(target):
                print(f"    {line}")
    return found


if __name__ == "__main__":
    main()
