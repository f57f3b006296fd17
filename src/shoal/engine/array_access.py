"""Read and write single items of arrays with few instructions.

Numba copies an array's seven numbers to look at one item, and makes a whole array of each field of
an array of records. Most of the instructions of a kernel did nothing else; LLVM removed them again.
Here an item is found where the array's numbers are, at the same address.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from llvmlite.ir import IntType
from numba.core import cgutils, ir, types
from numba.core.lowering import Lower
from numba.core.runtime.nrtdynmod import incref_decref_ty
from numba.np.arrayobj import fix_integer_index, load_item, store_item

__all__ = ["ItemLower", "is_item", "only_for_items"]

#: The places of the numbers of an array in Numba's representation.
OWNER, DATA, SHAPE, STRIDES = 0, 4, 5, 6
_SCALARS = (types.Integer, types.Float, types.Boolean)


def is_item(array: Any, index: Any) -> bool:
    """Return whether an index of one of these types leads to a number in such an array."""
    if not isinstance(array, types.Array) or not isinstance(array.dtype, _SCALARS):
        return False
    places = _places(index)
    return len(places) == array.ndim and all(isinstance(one, types.Integer) for one in places)


def _places(index: Any) -> tuple[Any, ...]:
    return tuple(index) if isinstance(index, types.BaseTuple) else (index,)


def only_for_items(function: Any, typemap: dict[str, Any]) -> set[str]:
    """Return the variables that are arrays of which only single numbers are read or written."""
    found: set[str] = set()
    others: set[str] = set()
    for block in function.blocks.values():
        for line in block.body:
            used = _used(line)
            whole, index = _base(line)
            if whole is not None and index is not None and is_item(typemap[whole], typemap[index]):
                found.add(whole)
                used.discard(whole)
            if not isinstance(line, ir.Del):
                others |= used
    return found - others


def _used(line: Any) -> set[str]:
    """Return the variables that a statement reads or changes, other than those that it defines."""
    value = line.value if isinstance(line, ir.Assign) else line
    if isinstance(value, ir.Var):
        return {value.name}
    parts = value.list_vars() if isinstance(value, ir.Stmt | ir.Expr | ir.Yield) else []
    return {part.name for part in parts}


def _base(line: Any) -> tuple[str | None, str | None]:
    """Return the variable that an item of is read or written, and that of the index."""
    if isinstance(line, ir.SetItem):
        return _names(line.target, line.index, line.value)
    if isinstance(line, ir.StaticSetItem):
        return _names(line.target, line.index_var, line.value)
    if isinstance(line, ir.Assign) and isinstance(line.value, ir.Expr):
        if line.value.op == "getitem":
            return _names(line.value.value, line.value.index)
        if line.value.op == "static_getitem" and not isinstance(line.value.index, str):
            return _names(line.value.value, line.value.index_var)
    return None, None


def _names(whole: Any, index: Any, *others: Any) -> tuple[str | None, str | None]:
    if index is None or whole.name in {index.name, *(other.name for other in others)}:
        return None, None
    return whole.name, index.name


class ItemLower(Lower):  # type: ignore[misc]
    """Numba's lowering, with a short way to single items of arrays that are in memory."""

    #: Fields of arrays of records of which only items are used: the array, and the offset.
    _fields: dict[str, tuple[str, int]]

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Lower the reading of an item."""
        pointer = self._item(value.name, index, signature.args[1])
        if pointer is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        kind = self.typeof(value.name)
        found = load_item(self.context, self.builder, kind, pointer)
        return self.context.cast(self.builder, found, kind.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Lower the writing of an item."""
        pointer = self._item(target_var.name, index_var, signature.args[1])
        if pointer is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        kind, value = self.typeof(target_var.name), self.loadvar(value_var.name)
        steps = self.typeof(value_var.name), signature.args[2], kind.dtype
        for given, wanted in pairwise(steps):
            value = self.context.cast(self.builder, value, given, wanted)
        store_item(self.context, self.builder, kind, value, pointer)
        return None

    def incref(self, typ: Any, val: Any) -> None:
        """Count one more reference."""
        if not self._counted(typ, val, "NRT_incref"):
            super().incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        """Count one reference less."""
        if not self._counted(typ, val, "NRT_decref"):
            super().decref(typ, val)

    def _counted(self, typ: Any, val: Any, function: str) -> bool:
        """Count a reference to an array, without looking for more arrays in it."""
        if not isinstance(typ, types.Array):
            return False
        if self.context.enable_nrt:
            called = cgutils.get_or_insert_function(self.module, incref_decref_ty, function)
            called.args[0].add_attribute("noalias")
            called.args[0].add_attribute("captures(none)")
            self.builder.call(called, [self.builder.extract_value(val, OWNER)])
        return True

    def _length(self, fnty: Any, args: Any) -> Any:
        """Return the length of an array, where a call asks for that; else None."""
        if not isinstance(fnty, types.Function) or fnty.typing_key is not len:
            return None
        name = args[0].name
        kind = self.typeof(name)
        if not isinstance(kind, types.Array) or not kind.ndim or name in self._blk_local_varmap:
            return None
        return next(self._numbers(name, SHAPE, 1))

    def _item(self, name: str, index: Any, index_kind: Any) -> Any:
        """Return a pointer to an item; None if there is no short way."""
        kind = self.typeof(name)
        if name in self._blk_local_varmap or self.context.enable_boundscheck:
            return None
        if not is_item(kind, index_kind) or not is_item(kind, self.typeof(index.name)):
            return None
        value = self.loadvar(index.name)
        value = self.context.cast(self.builder, value, self.typeof(index.name), index_kind)
        is_tuple = isinstance(index_kind, types.BaseTuple)
        values = cgutils.unpack_tuple(self.builder, value) if is_tuple else [value]
        whole, offset = self._fields.get(name, (name, None))
        shape = list(self._numbers(whole, SHAPE, kind.ndim))
        places = [
            fix_integer_index(self.context, self.builder, one, value, size)
            for one, value, size in zip(_places(index_kind), values, shape, strict=True)
        ]
        strides = list(self._numbers(whole, STRIDES, kind.ndim)) if kind.layout == "A" else None
        data = self.builder.load(self._at(whole, DATA))
        if offset is not None:
            wanted = self.context.get_data_type(kind.dtype).as_pointer()
            data = cgutils.pointer_add(self.builder, data, IntType(64)(offset), wanted)
        return cgutils.get_item_pointer2(
            self.context, self.builder, data, shape, strides, kind.layout, places
        )

    def _at(self, name: str, *numbers: int) -> Any:
        path = [IntType(32)(number) for number in (0, *numbers)]
        return self.builder.gep(self.getvar(name), path, inbounds=True)

    def _numbers(self, name: str, what: int, n: int) -> Iterator[Any]:
        for axis in range(n):
            number = self.builder.load(self._at(name, what, axis))
            if what == SHAPE:
                # As Numba does: a length is never negative.
                limits = [IntType(64)(0), IntType(64)(types.intp.maxval)]
                number.set_metadata("range", self.module.add_metadata(limits))
            yield number

    def _is_field(self, inst: Any, in_place: set[str]) -> bool:
        """Remember a field of an array of records, if that is all that is needed."""
        value, name = inst.value, inst.target.name
        if not isinstance(value, ir.Expr) or value.op != "static_getitem":
            return False
        if not isinstance(value.index, str) or value.value.name not in in_place:
            return False
        whole, kind = self.typeof(value.value.name), self.typeof(name)
        if not isinstance(whole, types.Array) or not isinstance(whole.dtype, types.Record):
            return False
        if kind.ndim != whole.ndim or kind.layout != "A":
            return False
        self._fields[name] = value.value.name, whole.dtype.offset(value.index)
        return True
