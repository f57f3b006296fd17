"""Spend less time on the way from a kernel's bytecode to its types.

Numba analyses the lives of all variables after each of its passes, imports all of its modules again
whenever a definition is looked up, and tries every template of ``+`` for each ``+``. For kernels
once, or none, is enough: their passes don't depend on each other in these ways, and a call of the
same function with the same types has the same signature.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import numpy as np
from numba.core import ir, types
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import AnnotateTypes, NopythonRewrites
from numba.core.typing import Context
from numba.core.untyped_passes import InlineClosureLikes

__all__ = ["KernelContext", "KernelPasses", "quicker"]

_OPERATIONS = ("binop", "inplace_binop", "unary")


@register_pass(mutates_CFG=True, analysis_only=False)
class InlineClosuresIfAny(InlineClosureLikes):  # type: ignore[misc]
    """Numba's pass, for functions that have something for it: a closure or a list."""

    _name = "kernel_inline_closures"

    def run_pass(self, state: Any) -> bool:
        """Run it if there is a reason to."""
        values = (line.value for line in _assignments(state))
        if any(isinstance(v, ir.Expr) and v.op in ("make_function", "build_list") for v in values):
            return bool(super().run_pass(state))
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class RewriteArraysIfAny(NopythonRewrites):  # type: ignore[misc]
    """Numba's pass, for functions that have something for it: arithmetic with whole arrays."""

    _name = "kernel_rewrites"

    def run_pass(self, state: Any) -> bool:
        """Run it if there is a reason to."""
        if any(_is_for_rewriting(line, state.typemap) for line in _assignments(state)):
            return bool(super().run_pass(state))
        return True


@register_pass(mutates_CFG=False, analysis_only=True)
class NoAnnotations(AnnotateTypes):  # type: ignore[misc]
    """Leave out the text that shows the types of each line, which nobody reads."""

    _name = "kernel_annotations"

    def run_pass(self, state: Any) -> bool:
        """Set an empty text."""
        state.type_annotation = ""
        return False


def _assignments(state: Any) -> Any:
    return (line for block in state.func_ir.blocks.values() for line in block.find_insts(ir.Assign))


def _is_for_rewriting(line: Any, typemap: dict[str, Any]) -> bool:
    value = line.value
    if not isinstance(value, ir.Expr):
        return False
    if value.op == "getitem":
        return isinstance(typemap[value.index.name], types.StringLiteral)
    if not isinstance(typemap[line.target.name], types.Array):
        return False
    if value.op == "call":
        return isinstance(getattr(typemap[value.func.name], "typing_key", None), np.ufunc)
    return value.op in _OPERATIONS


#: Numba's passes, and what stands for them.
_INSTEAD = {
    InlineClosureLikes: InlineClosuresIfAny,
    NopythonRewrites: RewriteArraysIfAny,
    AnnotateTypes: NoAnnotations,
}


def quicker(step: type) -> type:
    """Return the pass to run in the place of one of Numba's."""
    return _INSTEAD.get(step, step)


class KernelPasses(PassManager):  # type: ignore[misc]
    """Numba's way to run passes, without analysing the function after each one."""

    def _runPass(self, index: int, step: Any, state: Any) -> None:  # noqa: N802
        step.analysis = self._analysis
        step.run_initialization(state)
        step.run_pass(state)
        step.run_finalizer(state)


class KernelContext(Context):  # type: ignore[misc]
    """Numba's typing context, all of it shared, that remembers signatures of built-in functions."""

    #: The signatures that are known while kernels are compiled.
    signatures: ClassVar[dict[Any, Any]] = {}

    @classmethod
    @functools.cache
    def of(cls, shared: Context) -> KernelContext:
        """Return the one for one of Numba's: templates know contexts by identity."""
        if isinstance(shared, KernelContext):
            return shared
        found = cls.__new__(cls)
        found.__dict__ = shared.__dict__
        return found

    def load_additional_registries(self) -> None:
        """Look into the registries that are known: all have been imported."""
        for registry in list(self._registries):
            self.install_registry(registry)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call."""
        key = self._key_of(func, args, kws)
        if key is None:
            return super().resolve_function_type(func, args, kws)
        found = self.signatures.get(key)
        if found is None:
            found = super().resolve_function_type(func, args, kws)
            if found is not None:
                self.signatures[key] = found
        return found

    def _key_of(self, func: Any, args: Any, kws: Any) -> Any:
        """Return what a signature depends on; None if it may depend on more than the types."""
        if isinstance(func, types.Type) and not isinstance(func, types.Function):
            return None
        if not all(isinstance(arg, types.Type | int | str) for arg in args):
            return None
        return func, tuple((type(arg), arg) for arg in args), tuple(dict(kws).items())
