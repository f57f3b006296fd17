"""Make LLVM's instructions of a kernel: few, for functions that pass many arrays to each other.

Numba passes each number of each array of a named tuple as an argument of its own: a state of forty
arrays has hundreds, at each call. Here a named tuple is passed as a pointer, and what a kernel only
looks at is neither copied nor counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, ClassVar

from llvmlite.ir import IntType
from llvmlite.ir.instructions import AllocaInstr, GEPInstr, LoadInstr, StoreInstr
from numba.core import cgutils, ir, types
from numba.core.datamodel import DataModelManager, default_manager
from numba.core.datamodel.models import TupleModel, UniTupleModel
from numba.core.errors import UnsupportedError

from shoal.engine.array_access import ItemLower, only_for_items
from shoal.engine.borrowing import borrowed
from shoal.engine.on_demand import call_on_demand, is_on_demand

__all__ = ["BY_REFERENCE", "KernelLower", "refuse_foreign"]


class _ByReference:
    """A tuple that is passed as a pointer; who is called doesn't change what is there."""

    def get_argument_type(self: Any) -> Any:
        """Return the type of an argument."""
        return self.get_value_type().as_pointer()

    def as_argument(self: Any, builder: Any, value: Any) -> Any:
        """Return where a value is, or where it has been put."""
        if isinstance(value, LoadInstr) and not _may_be_overwritten(builder, value):
            return value.operands[0]
        return cgutils.alloca_once_value(builder, value)

    def from_argument(self: Any, builder: Any, value: Any) -> Any:
        """Return the value at a pointer."""
        return builder.load(value)


def _may_be_overwritten(builder: Any, load: Any) -> bool:
    """Return whether a variable may have another value by now than when it was loaded.

    An argument, or a part of one, never changes. A variable does, in a loop.
    """
    variable = load.operands[0]
    while isinstance(variable, GEPInstr):
        variable = variable.operands[0]
    if not isinstance(variable, AllocaInstr):
        return False
    if builder.block is not load.parent:
        return True
    since = takewhile(lambda one: one is not load, reversed(builder.block.instructions))
    return any(isinstance(one, StoreInstr) and one.operands[1] is variable for one in since)


class _Tuple(_ByReference, TupleModel):  # type: ignore[misc]
    pass


class _UniTuple(_ByReference, UniTupleModel):  # type: ignore[misc]
    pass


#: How kernels represent values: as Numba does, but for named tuples as arguments.
BY_REFERENCE = DataModelManager().chain(default_manager)
BY_REFERENCE.register(types.NamedTuple, _Tuple)
BY_REFERENCE.register(types.NamedUniTuple, _UniTuple)


def refuse_foreign(state: Any) -> None:
    """Raise if a kernel passes a named tuple to a function that isn't a kernel."""
    for call, signature in state.calltypes.items():
        if not isinstance(call, ir.Expr) or call.op != "call" or signature is None:
            continue
        callee = state.typemap[call.func.name]
        if not isinstance(callee, types.Dispatcher):
            continue
        is_kernel = callee.dispatcher._compiler.pipeline_class is type(state.pipeline)
        if not is_kernel and any(isinstance(t, types.BaseNamedTuple) for t in signature.args):
            raise UnsupportedError("a named tuple can be passed to a @kernel only", loc=call.loc)


class KernelLower(ItemLower):
    """Numba's lowering, with pointers to named tuples, and without counting what is `borrowed`."""

    #: Whether Python can call the result.
    has_wrapper: ClassVar[bool] = False

    def extract_function_arguments(self) -> Any:
        """Tell LLVM that nobody changes a named tuple during a call."""
        values = super().extract_function_arguments()
        for value, kind in zip(values, self.fndesc.argtypes, strict=True):
            if isinstance(kind, types.BaseNamedTuple):
                value.operands[0].add_attribute("noalias")
        return values

    def pre_lower(self) -> None:
        """Look for what is borrowed."""
        super().pre_lower()
        self._borrowed = borrowed(self.func_ir, self.fndesc.typemap)
        #: The variables that are read where their owner has them.
        self._read_in_place: set[str] = set()
        self._fields = {}
        self._for_items = only_for_items(self.func_ir, self.fndesc.typemap)

    def lower_inst(self, inst: Any) -> None:
        """Lower a statement."""
        if not isinstance(inst, ir.Assign):
            super().lower_inst(inst)
        elif not self._stays_in_place(inst):
            with self._counting(inst.target.name not in self._borrowed.names):
                super().lower_inst(inst)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """Lower a value; if it is a part of a tuple that is read in place, only that is loaded."""
        if inst.target.name in self._borrowed.names:
            place = self._place_of(inst.value)
            if place is not None:
                part = self.builder.load(place)
                return self.context.cast(self.builder, part, self._type_of(inst.value), ty)
        return super().lower_assign(ty, inst)

    def delvar(self, name: str) -> None:
        """Lower the end of a variable."""
        if name not in self._read_in_place:
            with self._counting(name not in self._borrowed.names):
                super().delvar(name)

    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        """Make a wrapper, but for what only other kernels call."""
        if self.has_wrapper:
            super().create_cpython_wrapper(release_gil)

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        """Lower a call; a kernel on demand is called by its address."""
        function = fnty.dispatcher.py_func if isinstance(fnty, types.Dispatcher) else None
        if function is None or not is_on_demand(function):
            length = self._length(fnty, expr.args)
            return super()._lower_call_normal(fnty, expr, signature) if length is None else length
        args = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
        demand, value = call_on_demand(self, function, signature, args)
        self.library.demands[demand.key] = demand
        return value

    def _stays_in_place(self, inst: Any) -> bool:
        """Let a variable stand for a tuple where it is, if it is the same all the time."""
        name = inst.target.name
        if name not in self._borrowed.once:
            return False
        is_short = name in self._for_items and not self.context.enable_boundscheck
        if is_short and self._is_field(inst, self._read_in_place):
            self._read_in_place.add(name)
            return True
        if not isinstance(self.typeof(name), types.BaseTuple | types.Array):
            return False
        place = self._place_of(inst.value)
        if place is None or self._type_of(inst.value) != self.typeof(name):
            return False
        self._singly_assigned_vars.discard(name)
        self._read_in_place.add(name)
        self.varmap[name] = place
        return True

    def _place_of(self, value: Any) -> Any:
        """Return a pointer to a value that is, or is part of, a tuple read in place; or None."""
        if isinstance(value, ir.Arg):
            is_pointer = isinstance(self.fndesc.argtypes[value.index], types.BaseNamedTuple)
            return self.fnargs[value.index].operands[0] if is_pointer else None
        if isinstance(value, ir.Var):
            return self.varmap[value.name] if value.name in self._read_in_place else None
        if not isinstance(value, ir.Expr) or value.op not in ("getattr", "static_getitem"):
            return None
        whole = value.value.name
        if whole not in self._read_in_place or not isinstance(self.typeof(whole), types.BaseTuple):
            return None
        number = self._number_of(value)
        if number is None:
            return None
        zero, index = IntType(32)(0), IntType(32)(number)
        return self.builder.gep(self.varmap[whole], [zero, index], inbounds=True)

    def _number_of(self, value: Any) -> int | None:
        whole = self.typeof(value.value.name)
        if value.op == "getattr":
            found: int = whole.fields.index(value.attr)
            return found
        is_place = isinstance(value.index, int) and 0 <= value.index < len(whole)
        return value.index if is_place else None

    def _type_of(self, value: Any) -> Any:
        if isinstance(value, ir.Arg):
            return self.typeof(f"arg.{value.name}")
        if isinstance(value, ir.Var):
            return self.typeof(value.name)
        return self.typeof(value.value.name)[self._number_of(value)]

    @contextmanager
    def _counting(self, is_counted: bool) -> Iterator[None]:
        before = self.context.enable_nrt
        self.context.enable_nrt = before and is_counted
        try:
            yield
        finally:
            self.context.enable_nrt = before
