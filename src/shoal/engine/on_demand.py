"""Compile a kernel when another one first calls it, for what few jobs need.

A caller knows the types of such a kernel, but not its code. It has a place for the address, empty
at first. Who finds it empty calls `_fulfil`, which compiles the kernel or takes it from the cache.
From then on a call costs one look at the address.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import threading
from _thread import interrupt_main
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing import make_concrete_template, signature

__all__ = [
    "Demand",
    "call_on_demand",
    "compile_demands",
    "declare",
    "is_on_demand",
    "kernel_of",
    "promise",
    "returned_by",
    "serve_with",
]

log = logging.getLogger("shoal.engine.on_demand")

#: What a kernel on demand can return, by its annotation.
RETURNS = {"None": types.none, "bool": types.boolean, "int": types.int64, "float": types.float64}
#: The function that compiled code calls to have a kernel compiled.
SYMBOL = "shoal_compile_on_demand"


class Demand(NamedTuple):
    """A kernel that may be called later: its name in compiled code, and what to compile."""

    key: str
    module: str
    name: str
    digest: str
    args: tuple[Any, ...]


#: The kernels on demand, by their functions: the digest of the sources, and what they return.
_declared: dict[Any, tuple[str, Any]] = {}
#: The same kernels, compiled, by module, name and digest: what a caller was compiled for.
_kernels: dict[tuple[str, str, str], Any] = {}
_demands: dict[bytes, Demand] = {}
_serve: Callable[[Demand], int] | None = None


def declare(compiled: Any, digest: str) -> None:
    """Let a kernel be compiled when it is first called."""
    function = compiled.py_func
    returned = function.__annotations__.get("return")
    if returned not in RETURNS:
        raise TypeError(
            f"{function.__qualname__} returns {returned}. A kernel on demand must be annotated to "
            f"return one of {', '.join(RETURNS)}: its callers are compiled before it."
        )
    _declared[function] = digest, RETURNS[returned]
    _kernels[function.__module__, function.__qualname__, digest] = compiled

    def call_template(args: Any, kws: Any) -> Any:
        pysig, folded = compiled._compiler.fold_argument_types(args, kws)
        folded = tuple(map(types.unliteral, folded))
        found = signature(RETURNS[returned], *folded)
        name = function.__name__
        template = make_concrete_template(f"OnDemand({name})", key=name, signatures=[found])
        return template, pysig, folded, {}

    compiled.get_call_template = call_template


def is_on_demand(function: Any) -> bool:
    """Return whether a function, not compiled, is compiled when it is first called."""
    return function in _declared


def returned_by(function: Any) -> Any:
    """Return the type that a kernel on demand returns; None for other kernels."""
    return _declared[function][1] if function in _declared else None


def kernel_of(demand: Demand) -> Any:
    """Return the kernel that a caller was compiled for; None if there is none, or another one."""
    return _kernels.get((demand.module, demand.name, demand.digest))


def promise(demands: tuple[Demand, ...]) -> None:
    """Take note of kernels that code from the cache may call."""
    _demands.update({demand.key.encode(): demand for demand in demands})


def serve_with(serve: Callable[[Demand], int]) -> None:
    """Set the function that compiles or loads a kernel and returns its address."""
    global _serve
    _serve = serve


def compile_demands() -> None:
    """Compile what the kernels of this process may call later, and what that may call.

    A kernel that can't be compiled raises Numba's error.
    """
    assert _serve is not None
    served: set[bytes] = set()
    while waiting := _demands.keys() - served:
        for key in sorted(waiting):
            _serve(_demands[key])
        served |= waiting


def call_on_demand(lower: Any, function: Any, found: Any, args: Any) -> tuple[Demand, Any]:
    """Write the call of a kernel on demand; return what is called, and the value.

    Parameters
    ----------
    lower
        The lowering of the caller.
    function
        The kernel, not compiled.
    found
        The signature of the call.
    args
        The values of the arguments.
    """
    context, builder, module = lower.context, lower.builder, lower.module
    name = f"{function.__module__}.{function.__qualname__}"
    digest, _ = _declared[function]
    key = context.mangler(name, found.args, uid=digest)
    demand = Demand(key, function.__module__, function.__qualname__, digest, tuple(found.args))
    promise((demand,))
    kind = context.call_conv.get_function_type(found.return_type, found.args).as_pointer()
    place = module.globals.get(f"{key}.address")
    if place is None:
        place = ir.GlobalVariable(module, kind, f"{key}.address")
        place.initializer, place.linkage = ir.Constant(kind, None), "internal"
    with builder.if_then(cgutils.is_null(builder, builder.load(place)), likely=False):
        asked = ir.FunctionType(cgutils.voidptr_t, [cgutils.voidptr_t])
        ask = cgutils.get_or_insert_function(module, asked, SYMBOL)
        address = builder.call(ask, [context.insert_const_string(module, key)])
        with builder.if_then(cgutils.is_null(builder, address), likely=False):
            message = f"{function.__qualname__} couldn't be compiled; see the log"
            context.call_conv.return_user_exc(builder, RuntimeError, (message,))
        builder.store(builder.bitcast(address, kind), place)
    status, value = context.call_conv.call_function(
        builder, builder.load(place), found.return_type, found.args, args
    )
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return demand, value


def _fulfil(key: bytes) -> int:
    """Return the address of a kernel, for compiled code: 0 if it can't be had, never an error."""
    is_interrupted = False
    while True:
        try:
            assert _serve is not None
            address = _serve(_demands[key])
            break
        except KeyboardInterrupt:
            # The caller is in the middle of a decision, which must be finished first.
            is_interrupted = True
        except BaseException:
            log.exception("a kernel couldn't be compiled")
            address = 0
            break
    if is_interrupted:
        # By then the kernel runs; Python will see the interrupt when it has ended.
        threading.Timer(0.01, interrupt_main).start()
    return address


@functools.cache
def _callback() -> Any:
    made = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(_fulfil)
    llvmlite.binding.add_symbol(SYMBOL, ctypes.cast(made, ctypes.c_void_p).value)
    return made


_callback()
