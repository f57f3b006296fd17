"""Measurements: how fast Shoal is, and how much its releases lose.

- ``python -m benchmarks.throughput``: rows per second, against what no anonymizer can beat.
- ``python -m benchmarks.on_deadline``: the same for algorithms that form a group around each row.
- ``python -m benchmarks.search``: with an index of the held rows, and without one.
- ``python -m benchmarks.gaps``: what gaps cost, and whom they tell apart.
- ``python -m benchmarks.audited``: promises about sensitive values, judged by the audit.
- ``python -m benchmarks.figures``: the figures of the papers, on the same or like data.

All are run from the root of the repository; see ``docs/benchmarks.md``.
"""
