"""The figures of the papers, drawn again: ``python -m benchmarks.figures``.

What each figure measures is in a module of its own; streams, runs, drawings and pages are shared.
"""
