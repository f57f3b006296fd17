"""The parts of a report, in their order.

Each is one module with ``measure``, which returns figures as plain values for JSON, and ``show``,
which returns a section of the page made of these figures alone.
"""
