"""``shoal spark`` for ``spark-submit``, which wants a file: ``spark-submit submit.py JOB …``."""

from __future__ import annotations

import sys

from shoal.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.argv.insert(1, "spark")
    main()
