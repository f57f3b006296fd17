"""Adversarial streams of cells, and a flood of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.engine.base import Anonymizer
from shoal.engine.kernels.arrays import Any1, Ints
from shoal.engine.space import Codes
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.ladder import Open, Path
from shoal.spec.policy import Policy, Window, ZAnonymity
from shoal.spec.schema import Quasi, Schema
from shoal.testing.streams import Stream
from shoal.testing.z.codes import Value, cell_codes

__all__ = ["PLACES", "as_cells", "cell_streams", "flood"]

#: z, and the length of a window in seconds.
Z, SECONDS = 3, 10.0
PLACES = Hierarchy.from_dict(
    {"Any": {"North": ["N1", "N2"], "South": {"East": ["E1", "E2", "E3"], "West": ["W1"]}}}
)


def as_cells(codes: Codes, promised: Policy, cuts: tuple[int, ...] = ()) -> Stream:
    """Return codes of ages, heights and places as a stream of cells with ladders."""
    quasi = [
        Quasi("age", Range(0, 100, step=5)),
        Quasi("height", Open()),
        Quasi("place", PLACES),
    ]
    schema = Schema("person", quasi, time="at")
    rows: list[list[Value]] = []
    for age, height, place in codes.values.tolist():
        where = None if np.isnan(place) else PLACES.leaves[int(place)]
        rows.append([_known(age), _known(height), where])
    cells = cell_codes(schema, rows, codes.subjects, codes.times)
    return Stream(schema, promised, cells, cuts=cuts)


def _known(number: float) -> float | None:
    return None if np.isnan(number) else number


def _stream(
    rows: Sequence[Sequence[Value]], subjects: Ints, times: Any1, *, in_rows: bool
) -> Stream:
    quasi = [Quasi("place", Path("*", levels=3)), Quasi("shop", Open())]
    schema = Schema("person", quasi, time="at")
    window = Window(rows=int(SECONDS)) if in_rows else Window(seconds=SECONDS)
    codes = cell_codes(
        schema, rows, np.ascontiguousarray(subjects, np.int64), times.astype(np.float64)
    )
    middle = len(rows) // 2
    promised = Policy(ZAnonymity(Z), window=window, missing="maybe")
    return Stream(schema, promised, codes, cuts=(3, middle, middle))


def cell_streams(anonymizer: type[Anonymizer], n: int = 40) -> dict[str, Stream]:
    """Return adversarial streams by description, if the anonymizer publishes cells.

    Each comes with a window in rows and with one in seconds.
    """
    if anonymizer.publishes != "values":
        return {}
    i = np.arange(n)
    town = [f"it*turin*{at % 2}" if at % 4 else f"it*aosta*{at}" for at in range(n)]
    stays = [None if at % 3 else f"it*{at}" if at % 6 else "it*turin" for at in range(n)]
    stays[1:3] = ["it*turin", "it*turin"]
    by_turns = [("it*turin*0", "it*aosta*1")[at // 8 % 2] for at in range(n)]
    extremes = np.array([-(2**63), 2**63 - 1, 0, -1])
    streams: dict[str, tuple[list[list[Value]], Ints, Any1]] = {
        "one subject exposes everything": (
            [[f"it*{at % 7}*{at}", f"{at % 5}"] for at in range(n)],
            np.where(i % 3, 7, 100 + i), i,
        ),
        "one subject only, one value": ([["it", "a"]] * n, np.full(n, 7), i),
        "z - 1 subjects, one value": ([["it*turin", "a"]] * n, i % (Z - 1), i),
        "just z subjects": ([["it*turin", "a"]] * n, i % Z, i),
        "every value is new": ([[f"{at}*{at}", f"{at}"] for at in range(n)], i, i),
        # A row published with the parent would be of one of the rare values.
        "rare values beside a popular one": ([[each, each] for each in town], i * 17 % n, i),
        "a value that is rare again and again": ([[each, None] for each in by_turns], i % 5, i),
        # A subject who was shown doesn't count, however rare the value is now.
        "one who was shown and stays": (
            [[each, None] for each in stays], np.where(i % 6, i, 0), i,
        ),
        # With one more subject one value would be published: it doesn't count for the other.
        "a value that lacks one subject": (
            [["it*turin*0" if at % 4 else f"it*turin*{at}", "a"] for at in range(n)],
            np.where(i % 4, i % (Z - 1), i), i,
        ),
        "values of many and of few parts": (
            [[f"a{'*b' * (at % 5)}", "*"] for at in range(n)], i % 6, i,
        ),
        "the largest and the smallest subjects": ([["it", "a"]] * n, extremes[i % 4], i),
        "times that go back": ([[each, "a"] for each in town], i % 6, 100.0 - i * 5 % 17),
        "all at the same time": ([[each, "a"] for each in town], i % 6, np.full(n, 5)),
        # What is exactly as old as the window is in it.
        "as far apart as a window": ([["it", "a"]] * n, i % 4, i * SECONDS / 2),
        "one huge gap": ([["it", "a"]] * n, i % 4, 1e12 * (i >= n // 2)),
        "nothing but gaps between": (
            [["it", "a"] if at % 6 == 0 else [None, None] for at in range(n)], i % 5, i,
        ),
        "gaps that alternate": (
            [["it*turin", None] if at % 2 else [None, "a"] for at in range(n)], i % 5, i,
        ),
    }  # fmt: skip
    return {
        f"{name}, window in {'rows' if in_rows else 'seconds'}": _stream(*parts, in_rows=in_rows)
        for name, parts in streams.items()
        for in_rows in (True, False)
    }


def flood(anonymizer: type[Anonymizer], n: int, n_quiet: int) -> tuple[Stream, int]:
    """Return a stream of many new values in one window, then few in each; and where those begin.

    >>> from shoal.algorithms import find
    >>> stream, quiet = flood(find("z-anonymity"), 50, 10)
    >>> len(stream), quiet
    (60, 50)
    """
    assert anonymizer.publishes == "values"
    i = np.arange(n + n_quiet)
    times = np.where(i < n, i * SECONDS / n, SECONDS * (i - n + 2))
    rows: list[list[Value]] = [[f"{at % 9}*{at % 50}*{at}", f"{at}"] for at in i.tolist()]
    return _stream(rows, i, times, in_rows=False), n
