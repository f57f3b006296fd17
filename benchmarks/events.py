"""How fast z-anonymity is: ``python -m benchmarks.events [--quick] [--json FILE] [--write PAGE]``.

Events against the authors' package and against the pass-through, on made-up and on real streams;
who has company in what was published, beside what the model says; values with ladders; and whether
memory follows the window. Targets are reported as met or not, and never enforced: a busy machine
isn't a bug.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import events_data
from benchmarks.events_data import Case, Stream, msnbc, retail
from benchmarks.events_growth import grown
from benchmarks.events_peer import has_peer, of_ladders, of_peer
from benchmarks.events_runs import of_case, of_paths
from benchmarks.events_text import text
from benchmarks.machine_use import Use
from benchmarks.measure import machine, say
from benchmarks.options import add_options, sizes_of, tell

__all__ = ["Sizes", "main", "measure"]


@dataclass(frozen=True)
class Sizes:
    """How much is measured, and what is promised."""

    rows: int = 1_000_000
    n_subjects: int = 10_000
    n_values: int = 5_000
    #: The window is the whole trace of the made-up stream, divided by this.
    parts: int = 10
    z: int = 20
    k: int = 2
    probability: float = 0.9
    batch_rows: int = 65_536
    repeats: int = 5
    #: The peer takes half a minute.
    peer_repeats: int = 1
    file_repeats: int = 3
    growth_repeats: int = 1
    warm_rows: int = 2_000
    msnbc_window: int = 500_000
    #: Of real events, one out of this many.
    retail_every: int = 1
    msnbc_every: int = 1

    @classmethod
    def quick(cls) -> Sizes:
        """Enough to see that everything works, and for nothing else."""
        return cls(
            rows=200, n_subjects=20, n_values=15, z=3, batch_rows=64, repeats=1, file_repeats=1,
            warm_rows=40, msnbc_window=100, retail_every=400, msnbc_every=10_000,
        )  # fmt: skip

    @property
    def stream(self) -> Stream:
        return Stream(self.rows, self.n_subjects, self.n_values)

    @property
    def window(self) -> float:
        return float(self.rows // self.parts)


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Everything for which there are data, with a word on standard error before each part."""
    results: dict[str, Any] = {
        "machine": machine(), "z": sizes.z, "k": sizes.k, "probability": sizes.probability,
    }  # fmt: skip
    use = Use.now()
    stream, z, window = sizes.stream, sizes.z, sizes.window
    if has_peer():
        say(f"{stream.n_rows:,} events, beside zanon")
        results["peer"] = of_peer(
            stream, z=z, window=window, batch_rows=sizes.batch_rows, repeats=sizes.repeats,
            peer_repeats=sizes.peer_repeats,
        )  # fmt: skip
    else:
        say("the package zanon isn't installed: the peer is left out")
    results["files"] = []
    for case in _cases(sizes, folder):
        say(f"from file to file: {case.title}")
        results["files"].append(
            of_case(
                case, folder, z=z, k=sizes.k, probability=sizes.probability,
                repeats=sizes.file_repeats,
            )
        )  # fmt: skip
    say("values with ladders")
    results["ladders"] = of_ladders(
        stream, z=z, window=window, batch_rows=sizes.batch_rows, repeats=sizes.repeats
    )
    results["paths"] = of_paths(stream, folder, z=z, window=window, repeats=sizes.file_repeats)
    say("more rows, longer windows")
    results["growth"] = grown(
        stream, folder, z=z, window=window, repeats=sizes.growth_repeats, warm=sizes.warm_rows
    )
    results["others"] = use.since().others
    return results


def _cases(sizes: Sizes, folder: Path) -> Iterator[Case]:
    """The real events that there are."""
    if events_data.RETAIL.exists():
        yield from retail(folder, every=sizes.retail_every)
    else:
        say("../shared/data/online_retail.parquet isn't there: it is left out")
    if events_data.MSNBC.exists():
        yield from msnbc(folder, sizes.msnbc_window, every=sizes.msnbc_every)
    else:
        say("../shared/data/msnbc_events.parquet isn't there: it is left out")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events", description=__doc__)
    add_options(parser, rows="the made-up stream (default 1,000,000)")
    options = parser.parse_args(arguments)
    sizes = sizes_of(Sizes, parser, options)
    results = measure(sizes, options.data)
    tell(options, "events", results, text(results))


if __name__ == "__main__":
    main()
