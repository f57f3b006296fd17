"""The command: ``python -m tests.fuzz``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

import tests.fuzz
from tests.fuzz import TARGETS, fuzz


def main() -> int:
    """Fuzz all targets; return 1 if there are findings."""
    options = argparse.ArgumentParser(description=tests.fuzz.__doc__)
    options.add_argument("--count", type=int, default=1_000_000, help="inputs, over all targets")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--target", choices=list(TARGETS))
    options.add_argument("--number", type=int, help="make one input again, and show what happens")
    given = options.parse_args()
    names = [given.target] if given.target else list(TARGETS)
    if given.number is not None:
        found = list(fuzz(names[0], 1, given.seed, given.number))
        print(*found, sep="\n")
        return bool(found)
    kinds: Counter[tuple[str, str]] = Counter()
    for name in names:
        n_findings = 0
        for finding in fuzz(name, given.count // len(names), given.seed):
            n_findings += 1
            kinds[name, finding.what] += 1
            if kinds[name, finding.what] <= 3:
                print(f"{name} {finding.number}: {finding.what}", flush=True)
        print(f"{name}: {given.count // len(names):,} inputs, {n_findings:,} findings", flush=True)
    return bool(kinds)


if __name__ == "__main__":
    sys.exit(main())
