"""Words that several threads read and write at once, each in one step.

What a thread has written before it stores, adds to or swaps a word is seen by every thread that
then loads the new value. In plain Python a lock does that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from shoal.engine.jit import IS_PLAIN
from shoal.engine.kernels.arrays import Ints

__all__ = ["add", "load", "store", "swap"]

#: The size of a word, in bytes.
WORD = 8
_lock = threading.Lock()


def _load(words: Ints, i: int) -> int:
    """Return a word."""
    with _lock:
        return int(words[i])


def _store(words: Ints, i: int, value: int) -> None:
    """Write a word."""
    with _lock:
        words[i] = value


def _add(words: Ints, i: int, value: int) -> int:
    """Add to a word; return what it was."""
    with _lock:
        words[i] += value
        return int(words[i]) - value


def _swap(words: Ints, i: int, known: int, value: int) -> bool:
    """Write a word if it still is what was ``known``; return whether it was."""
    with _lock:
        is_known = bool(words[i] == known)
        if is_known:
            words[i] = value
        return is_known


if IS_PLAIN:
    load, store, add, swap = _load, _store, _add, _swap
else:
    from numba.core import cgutils, types
    from numba.core.extending import intrinsic

    def _compiled(returned: Any, write: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function for kernels; ``write`` writes its one instruction.

        It is given the address of the word, and the other arguments as numbers.
        """

        def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind, *others = signature.args
            words = context.make_array(kind)(context, builder, args[0])
            i, *numbers = (
                context.cast(builder, value, given, types.int64)
                for value, given in zip(args[1:], others, strict=True)
            )
            place = cgutils.get_item_pointer(context, builder, kind, words, [i])
            found = write(builder, place, *numbers)
            return context.get_dummy_value() if returned is types.none else found

        def typed(_: Any, words: Any, i: Any, *numbers: Any) -> Any:
            return returned(words, i, *numbers), lower

        return typed

    def _stored(builder: Any, place: Any, value: Any) -> None:
        builder.store_atomic(value, place, "release", WORD)

    def _swapped(builder: Any, place: Any, known: Any, value: Any) -> Any:
        found = builder.cmpxchg(place, known, value, "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    _write_load = _compiled(types.int64, lambda to, at: to.load_atomic(at, "acquire", WORD))
    _write_store = _compiled(types.none, _stored)
    _write_add = _compiled(types.int64, lambda to, at, n: to.atomic_rmw("add", at, n, "acq_rel"))
    _write_swap = _compiled(types.boolean, _swapped)
    # Numba asks for the number of arguments.
    load = intrinsic(lambda typing, words, i: _write_load(typing, words, i))
    store = intrinsic(lambda typing, words, i, value: _write_store(typing, words, i, value))
    add = intrinsic(lambda typing, words, i, value: _write_add(typing, words, i, value))
    swap = intrinsic(lambda typing, words, i, old, new: _write_swap(typing, words, i, old, new))
