"""What a run takes without deciding anything, beside Arrow alone.

``python -m benchmarks.limit [--quick] [--json FILE] [--write PAGE]`` reads and writes the same rows
with Arrow in one thread and with the pass-through, which no algorithm can beat, and shows where the
time of the pass-through goes. CSV and JSON stand beside Parquet; CASTLE beside the pass-through.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from benchmarks import runs
from benchmarks.limit_parts import PARTS, processor_seconds
from benchmarks.machine_use import Use
from benchmarks.markdown import met, spread, table
from benchmarks.measure import Sample, interleaved, machine, say
from benchmarks.options import add_options, sizes_of, tell
from benchmarks.workloads import ROW_GROUP_ROWS, Workload, acs_income, census_file
from shoal.io import open_sink, open_source
from shoal.io.base import BATCH_ROWS

__all__ = ["Sizes", "main"]

#: The pass-through takes at most this many times the time of Arrow, CASTLE of the pass-through.
MOST_OF_ARROW, MOST_OF_PASS_THROUGH = 3.0, 2.0


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    #: Rows of the census, where ``acs-income-2018`` isn't there.
    rows: int = 1_000_000
    repeats: int = 5
    text_rows: int = 200_000
    k: int = runs.K
    delay: int = runs.DELAY_ROWS
    real_data: bool = True

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(rows=150, repeats=2, text_rows=60, k=5, delay=50, real_data=False)


# -- measuring -------------------------------------------------------------------------------------


def by_arrow(workload: Workload, output: Path) -> None:
    """Read and write the columns of a workload with Arrow alone, in one thread."""
    columns = list(workload.schema.columns)
    if workload.path.suffix == ".parquet":
        file = pq.ParquetFile(workload.path, pre_buffer=False)
        batches = file.iter_batches(ROW_GROUP_ROWS, columns=columns, use_threads=False)
        first = next(batches)
        with pq.ParquetWriter(output, first.schema, compression="zstd") as writer:
            for batch in (first, *batches):
                writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)
        return
    if workload.path.suffix == ".csv":
        options = pa.csv.ReadOptions(use_threads=False)
        convert = pa.csv.ConvertOptions(include_columns=columns)
        reader = pa.csv.open_csv(workload.path, options, convert_options=convert)
        with reader, pa.csv.CSVWriter(output, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
        return
    # Arrow has no writer of JSON: this is reading alone.
    pa.json.read_json(workload.path, pa.json.ReadOptions(use_threads=False))


def as_text(workload: Workload, rows: int, ending: str, folder: Path) -> Workload:
    """The first rows of a workload as a file of text."""
    path = folder / f"limit-{workload.name}-{rows}.{ending}"
    source = open_source(workload.path, workload.schema.columns, batch_rows=min(rows, BATCH_ROWS))
    n, sink = 0, None
    for chunk in source:
        batch = chunk.batch.slice(0, rows - n)
        plain = [
            (field.name, getattr(field.type, "value_type", field.type)) for field in batch.schema
        ]
        sink = sink or open_sink(path, pa.schema(plain))
        sink.write(batch)
        n += batch.num_rows
        if n == rows:
            break
    assert sink is not None
    sink.close()
    source.close()
    return replace(workload, path=path, n_rows=n)


def beside_arrow(workload: Workload, sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Arrow, the pass-through and, for Parquet, CASTLE in turn."""
    ending = workload.path.suffix
    rivals: dict[str, Callable[[Path], object]] = {
        "Arrow": lambda output: by_arrow(workload, output),
        "pass-through": lambda output: runs.pass_through(workload, output),
    }
    if ending == ".parquet":
        rivals["castle"] = lambda output: runs.publish(
            "castle", workload, output, k=sizes.k, delay=sizes.delay
        )
    spent: dict[str, list[float]] = {name: [] for name in rivals}
    with tempfile.TemporaryDirectory(dir=folder) as name:

        def run(rival: str) -> Callable[[], None]:
            def once() -> None:
                begin = time.process_time()
                rivals[rival](Path(name, f"{rival}{ending}"))
                spent[rival].append(time.process_time() - begin)

            return once

        samples = dict(zip(rivals, interleaved(sizes.repeats, *map(run, rivals)), strict=True))
    found: dict[str, Any] = {
        "format": ending[1:],
        "workload": workload.name,
        "n_rows": workload.n_rows,
        "seconds": {rival: sample.as_dict() for rival, sample in samples.items()},
        # The first round isn't counted.
        "processor": {rival: Sample(tuple(s[1:])).as_dict() for rival, s in spent.items()},
        "of_arrow": samples["pass-through"].per(samples["Arrow"]).as_dict(),
    }
    if "castle" in samples:
        found["of_pass_through"] = samples["castle"].per(samples["pass-through"]).as_dict()
    return found


def parts(workload: Workload, sizes: Sizes, folder: Path) -> dict[str, Any]:
    """The processor seconds of each part of the pass-through, several times."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        found = [processor_seconds(workload, Path(name, "o.parquet")) for _ in range(sizes.repeats)]
    return {part: Sample(tuple(one[part] for one in found)).as_dict() for part in PARTS}


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Everything, with a word on standard error before each part."""
    real = acs_income() if sizes.real_data else None
    if real is None and sizes.real_data:
        say("../shared/data/acs_income_2018.parquet isn't there: the census takes its place")
    folder.mkdir(parents=True, exist_ok=True)
    workload = real or census_file(sizes.rows, folder)
    use = Use.now()
    files = []
    for ending in ("parquet", "csv", "jsonl"):
        say(f"Arrow and the pass-through: {ending}")
        text = ending != "parquet"
        one = as_text(workload, sizes.text_rows, ending, folder) if text else workload
        files.append(beside_arrow(one, sizes, folder))
        if text:
            one.path.unlink()
    say("the parts of the pass-through")
    return {
        "files": files,
        "parts": parts(workload, sizes, folder),
        "machine": machine() | {"others": use.since().others},
        "k": sizes.k,
        "delay": sizes.delay,
    }


# -- telling ---------------------------------------------------------------------------------------


def text(results: dict[str, Any]) -> str:
    """All results as Markdown."""
    where = results["machine"]
    return "\n\n".join(
        [
            "Measured on {processor}, {cores} cores, with Python {python}, NumPy {numpy}, Numba "
            "{numba}, PyArrow {pyarrow}, while other programs used {others:.0%} of the machine. "
            "Medians, with minimum and maximum in brackets; ratios are per repeat.".format(**where),
            "### The limit: beside Arrow",
            _files_text(results),
            "### The limit: where the time goes",
            _parts_text(results),
        ]
    )


def _files_text(results: dict[str, Any]) -> str:
    rows = []
    for one in results["files"]:
        for rival, seconds in one["seconds"].items():
            ratio = target = ""
            if rival == "pass-through":
                ratio = f"{spread(one['of_arrow'])} of Arrow"
                if one["format"] == "parquet":
                    target = met(one["of_arrow"]["median"] <= MOST_OF_ARROW)
            elif rival == "castle":
                ratio = f"{spread(one['of_pass_through'])} of the pass-through"
                target = met(one["of_pass_through"]["median"] <= MOST_OF_PASS_THROUGH)
            reads = one["format"] == "jsonl" and rival == "Arrow"
            rows.append(
                [
                    f"{one['format']}, {one['n_rows']:,} rows",
                    f"{rival}, reading alone" if reads else rival,
                    spread(seconds),
                    f"{one['n_rows'] / seconds['median']:,.0f}",
                    spread(one["processor"][rival]),
                    ratio,
                    target,
                ]
            )
    first = results["files"][0]
    return (
        f"`{first['workload']}`. Arrow reads and writes in one thread, with the same row groups "
        "and compression; the pass-through overlaps reading, deciding and writing. `castle` has "
        f"k = {results['k']} and a delay of {results['delay']:,} rows. Targets for Parquet: the "
        f"pass-through at most {MOST_OF_ARROW:g} times Arrow, `castle` at most "
        f"{MOST_OF_PASS_THROUGH:g} times the pass-through.\n\n"
        + table(["file", "", "s", "rows/s", "processor s", "times", "target"], rows)
    )


def _parts_text(results: dict[str, Any]) -> str:
    found, whole = results["parts"], results["files"][0]
    total = sum(found[part]["median"] for part in PARTS)
    spent = whole["processor"]["pass-through"]["median"]
    # The parts are measured apart from the whole runs, so the rest may be less than nothing.
    rest = max(0.0, spent - total)
    lines = [
        [part, spread(found[part], 3), f"{found[part]['median'] / (total + rest):.0%}"]
        for part in PARTS
    ]
    lines.append(
        [
            "queues and threads",
            f"{rest:.3f}" if rest else "none seen",
            f"{rest / (total + rest):.0%}",
        ]
    )
    return (
        "Processor seconds of the pass-through's parts, one after the other in one thread. What "
        "the real run takes beyond their sum is counted as queues and threads.\n\n"
        + table(["part", "processor s", "share"], lines)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limit", description=__doc__)
    add_options(parser, rows="the census, where acs-income-2018 isn't there (default 1,000,000)")
    options = parser.parse_args(arguments)
    results = measure(sizes_of(Sizes, parser, options), options.data)
    tell(options, "limit", results, text(results))


if __name__ == "__main__":
    main()
