"""Find the variables of a kernel whose arrays needn't be counted.

Numba counts a reference for each array of each variable, and for each part of a named tuple that
is looked at: ``state.held.rows`` counts all arrays of ``state.held`` up and down again. But the
caller keeps what it passes until the call has ended. So parts and views of arguments need no
counts, which were most of the code of a kernel.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from numba.core import ir, types

__all__ = ["Borrowed", "borrowed"]

_PLACES = (types.Integer, types.SliceType)


class Borrowed(NamedTuple):
    """The variables of a kernel that are parts or views of its arguments.

    Those in ``once`` are defined in one place only.
    """

    names: frozenset[str]
    once: frozenset[str]


def borrowed(function: Any, typemap: Mapping[str, Any]) -> Borrowed:
    """Return the variables that only ever are an argument, or a part or a view of one.

    Parameters
    ----------
    function
        A typed function, as Numba's intermediate representation.
    typemap
        The types of its variables.
    """
    sources: defaultdict[str, set[str | None]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for block in function.blocks.values():
        for line in block.find_insts(ir.Assign):
            sources[line.target.name] |= _sources(line.value, typemap)
            counts[line.target.name] += 1
    found = set(sources)
    while True:
        # Each definition of a variable must be borrowed, from something that is.
        owned = {name for name in found if not sources[name] <= found}
        if not owned:
            break
        found -= owned
    return Borrowed(frozenset(found), frozenset(name for name in found if counts[name] == 1))


def _sources(value: Any, typemap: Mapping[str, Any]) -> set[str | None]:
    """Return of which variable a value is a part or a view; of none, or of {None}: not known."""
    if isinstance(value, ir.Arg):
        return set()
    if isinstance(value, ir.Var):
        return {value.name}
    if isinstance(value, ir.Expr) and value.op in ("getattr", "static_getitem", "getitem"):
        whole = typemap[value.value.name]
        is_part = isinstance(whole, types.BaseTuple) and value.op != "getitem"
        if is_part or (isinstance(whole, types.Array) and _is_view(value, typemap)):
            return {value.value.name}
    return {None}


def _is_view(value: Any, typemap: Mapping[str, Any]) -> bool:
    """Return whether an array's item is a view of it, if it is an array, and never a copy."""
    if value.op == "static_getitem":
        # A field of records, or a place.
        return isinstance(value.index, str | int | slice)
    if value.op != "getitem":
        return False
    index = typemap[value.index.name]
    parts = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
    return all(isinstance(part, _PLACES) for part in parts)
