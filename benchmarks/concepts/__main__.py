"""Draw the pictures of docs/ten-people.md and write its tables: ``python -m benchmarks.concepts``.

Everything is computed by Shoal from the ten people in `benchmarks.concepts.people`, in plain Python
in a few seconds. `tests/docs/test_ten_people.py` fails if pictures or tables are old.
"""

from __future__ import annotations

from benchmarks.concepts.pictures import pictures
from benchmarks.concepts.tables import tables
from benchmarks.markdown import replace_section
from benchmarks.workloads import ROOT

PAGE = ROOT / "docs" / "ten-people.md"
FOLDER = ROOT / "docs" / "figures"


def main() -> None:
    """Write everything."""
    for name, picture in pictures().items():
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")
    for name, text in tables().items():
        replace_section(PAGE, name, text)


if __name__ == "__main__":
    main()
