"""Grades of what an attacker knows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.setting import Setting

__all__ = ["grades"]


def grades(
    setting: Setting, random: np.random.Generator, n: int, *, in_part: bool = True
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield what the attacker knows, in words and for each target.

    All quasi values; then those that the setting names, or else, ``in_part``, half of them, drawn
    for each target.
    """
    yield "all quasi values", setting.knows(n)
    if setting.known is not None:
        yield ", ".join(setting.known), setting.knows(n, setting.known)
        return
    n_quasi = len(setting.schema.quasi)
    if in_part and n_quasi > 1:
        order = random.permuted(np.tile(np.arange(n_quasi), (n, 1)), axis=1)
        yield "half of the quasi values", order < (n_quasi + 1) // 2
