"""``python -m benchmarks.figures [NAMES…] [--quick] [--out FOLDER]``: measure, draw, and write.

Without names everything is made: the figures of CASTLE, and the audit of UCI Adult. Each is a
section of ``castle.md`` in the folder; if some are named, the other sections stay as they are.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.adult import Audited, audit_adult
from benchmarks.figures import fig_5_5, fig_5_6, fig_5_7, fig_5_8
from benchmarks.figures.model import Figure
from benchmarks.figures.page import figure_text, picture_name
from benchmarks.figures.plot import draw
from benchmarks.figures.sizes import Sizes
from benchmarks.figures.streams import ADULT
from benchmarks.markdown import replace_section
from benchmarks.workloads import ROOT

__all__ = ["main"]

FIGURES: dict[str, Callable[[Sizes], Figure]] = {
    "5.5": fig_5_5.figure,
    "5.6": fig_5_6.figure,
    "5.7": fig_5_7.figure,
    "5.8": fig_5_8.figure,
}
AUDIT = "audit"
NAMES = (*FIGURES, AUDIT)
#: What can be measured without UCI Adult.
GENERATED = ("5.7",)

HEAD = """\
# CASTLE: the figures of the thesis

Made by `python -m benchmarks.figures`; don't edit. The figures are those of J. Cao's thesis (NUS,
2010), §5.7.1. Loss is the average information loss of §2.3, from 0 to 1: the mean over seeds, ±
half of the distance between the least and the largest (the bars in the pictures). Whether a claim
of the thesis holds is computed from the numbers: a difference counts if it is larger than the
spreads of both sides together. The thesis' text gives no numbers to compare with, only orderings
and trends.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures", metavar="FOLDER")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(NAMES)}")
    sizes = Sizes.quick() if options.quick else Sizes()
    options.out.mkdir(parents=True, exist_ok=True)
    page = options.out / "castle.md"
    if not page.exists() or (not options.names and ADULT.exists()):
        sections = [f"<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in NAMES]
        page.write_text("\n".join([HEAD, *sections]), encoding="utf-8")
    broken = False
    for name in options.names or NAMES:
        if name not in GENERATED and not ADULT.exists():
            _say(f"{name}: left out, for ../shared/data/adult.csv isn't there")
            continue
        begin = time.perf_counter()
        if name == AUDIT:
            audited = _audited(sizes)
            broken = audited.report.exit_code != 0
            section = _audit_text(audited)
        else:
            figure = FIGURES[name](sizes)
            draw(figure, options.out / f"{picture_name(figure)}.svg")
            section = figure_text(figure)
        replace_section(page, name, section)
        _say(f"{name}: {time.perf_counter() - begin:.0f} s")
    print(page.read_text(encoding="utf-8"))
    if broken:
        raise SystemExit("the audit of UCI Adult doesn't find every promise kept")


def _audited(sizes: Sizes) -> Audited:
    with tempfile.TemporaryDirectory(prefix="shoal-audit-") as folder:
        return audit_adult(ADULT, Path(folder), rows=sizes.rows, k=sizes.k, delay=sizes.delay)


def _audit_text(audited: Audited) -> str:
    lines = [*audited.summary.lines(), "", *str(audited.report).splitlines()]
    return "\n\n".join(
        [
            "## UCI Adult, published and audited",
            f"From file to file with a trace, ten quasi attributes, k = {audited.k}, "
            f"δ = {audited.delay:,} rows. The audit shares no code with what it judges.",
            "\n".join(["```text", *lines, "```"]),
        ]
    )


def _say(line: str) -> None:
    print(f"… {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
