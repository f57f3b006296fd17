"""Wall time from a fresh clone to the demo's first picture: ``python -m benchmarks.first_picture``.

It clones this repository into an empty folder, runs ``make demo`` there with an empty cache of
kernels, and tells when each line appeared; without a terminal the first picture is the first line
with figures. pip takes wheels from its own cache; ``--no-pip-cache`` makes it download them all.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.markdown import met, replace_section, table
from benchmarks.measure import machine
from benchmarks.workloads import ROOT

__all__ = ["main", "report", "until_picture"]

#: The most seconds, on two cores.
MOST = 60.0
#: Is in each line with figures of the demo.
PICTURE = " rows in, "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-pip-cache", action="store_true", help="download all packages")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results in this page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "SHOAL_CACHE_DIR": str(Path(folder, "cache")),
            "NUMBA_DISABLE_JIT": "0",
        }
        environment.pop("SHOAL_SHARED_CACHE_DIR", None)
        if options.no_pip_cache:
            environment["PIP_NO_CACHE_DIR"] = "1"
        clone = Path(folder, "shoal")
        begin = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        seen = [(0.0, "git clone")]
        for line in until_picture(["make", "demo"], clone, environment):
            seen.append((time.monotonic() - begin, line))
            print(f"{seen[-1][0]:6.1f} s  {line}", file=sys.stderr)
    text = report(seen, with_cache=not options.no_pip_cache)
    print(text)
    if options.write is not None:
        replace_section(options.write, "first-picture", text)


def until_picture(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Yield the lines that a command prints, up to the first picture; then end it."""
    child = subprocess.Popen(
        command, cwd=folder, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert child.stdout is not None
    try:
        for line in map(str.strip, child.stdout):
            yield line
            if PICTURE in line:
                return
        raise SystemExit(f"{' '.join(command)} ended without a picture")
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def report(seen: list[tuple[float, str]], *, with_cache: bool) -> str:
    """Return a table of the lines and when they appeared, and whether the target is met."""
    on, last = machine(), seen[-1][0]
    where = "from its own cache" if with_cache else "from the index, with no cache"
    return "\n".join(
        [
            f"On {on['processor']}, {on['cores']} cores; pip takes wheels {where}.",
            "",
            table(["after, s", "what is printed"], [[f"{at:.1f}", line] for at, line in seen]),
            "",
            f"The first picture after {last:.1f} s, target {MOST:.0f} s {met(last <= MOST)}.",
        ]
    )


if __name__ == "__main__":
    main()
