"""Measurements: how fast Shoal is, and how much its releases lose.

- ``python -m benchmarks.throughput``: rows per second, against what no anonymizer can beat.
- ``python -m benchmarks.figures``: the figures of the papers, on the same or like data.

Both are run from the root of the repository; see ``docs/benchmarks.md``.
"""
