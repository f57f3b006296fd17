"""``python -m benchmarks.figures [NAMES…] [--quick] [--out FOLDER]``: measure, draw, and write.

Without names everything is made: all figures, and the audit of UCI Adult.
A name is that of a section, or of a page with all of its sections. Pages are files in the folder;
if some sections are named, the others stay as they are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures.model import Figure
from benchmarks.figures.page import figure_text, picture_name
from benchmarks.figures.pages import PAGES, BrokenError, Page
from benchmarks.figures.plot import draw
from benchmarks.markdown import replace_section
from benchmarks.measure import say
from benchmarks.workloads import ROOT

__all__ = ["main"]

NAMES = (*(name for page in PAGES for name in page.sections), *(page.name for page in PAGES))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work at all?")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures", metavar="FOLDER")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(NAMES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    broken: list[str] = []
    for page in PAGES:
        whole = not options.names or page.name in options.names
        wanted = [name for name in page.sections if whole or name in options.names]
        if wanted:
            broken += _write(page, wanted, options.out, quick=options.quick)
    if broken:
        raise SystemExit("; ".join(broken))


def _write(page: Page, wanted: Sequence[str], folder: Path, *, quick: bool) -> list[str]:
    """Make some sections of a page; give what is broken."""
    path = folder / f"{page.name}.md"
    made = [name for name in wanted if not page.lacks(name)]
    if not path.exists() or made == list(page.sections):
        sections = [f"<!-- {name}:begin -->\n<!-- {name}:end -->\n" for name in page.sections]
        path.write_text("\n".join([page.head, *sections]), encoding="utf-8")
    broken = []
    for name in wanted:
        if name not in made:
            say(f"{name}: left out, for {', '.join(page.lacks(name))} isn't there")
            continue
        begin = time.perf_counter()
        try:
            found = page.sections[name](quick)
        except BrokenError as error:
            broken.append(str(error))
            found = error.section
        if isinstance(found, Figure):
            draw(found, folder / f"{picture_name(found)}.svg")
            found = figure_text(found)
        replace_section(path, name, found)
        say(f"{name}: {time.perf_counter() - begin:.0f} s")
    print(path.read_text(encoding="utf-8"))
    return broken


if __name__ == "__main__":
    main()
