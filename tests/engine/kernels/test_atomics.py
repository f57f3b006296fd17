"""Words that several threads change at once."""

from __future__ import annotations

import threading

import numpy as np

from shoal.engine.jit import kernel
from shoal.engine.kernels import atomics
from shoal.engine.kernels.arrays import Ints


@kernel
def _count(words: Ints, n: int) -> None:
    for _ in range(n):
        atomics.add(words, 0, 2)
        while True:
            known = atomics.load(words, 16)
            if atomics.swap(words, 16, known, known + 3):
                break


@kernel
def _one_of_each(words: Ints, found: Ints) -> None:
    found[0] = atomics.load(words, 1)
    atomics.store(words, 1, found[0] + 10)
    found[1] = atomics.add(words, 1, 5)
    found[2] = atomics.swap(words, 1, 0, 99)
    found[3] = atomics.swap(words, 1, 22, 40)


def test_each_does_what_it_says() -> None:
    words, found = np.array([1, 7, 3]), np.zeros(4, np.int64)
    _one_of_each(words, found)
    assert words.tolist() == [1, 40, 3]
    assert found.tolist() == [7, 17, 0, 1]


def test_nothing_is_lost_between_threads() -> None:
    words = np.zeros(32, np.int64)
    threads = [threading.Thread(target=_count, args=(words, 2_000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert words[[0, 16]].tolist() == [16_000, 24_000]
