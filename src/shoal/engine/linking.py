"""Compile each kernel once, as an object of its own, and link kernels by their names.

Numba copies a compiled callee into every caller, which optimizes and emits it again: in a chain
of calls the last function is compiled once for each function above it. Here a caller refers to a
large callee by its name, as in a language with separate compilation; a small one is still copied,
so that it can be inlined. A function that only other kernels call gets no wrapper for Python,
which would unpack each array of its arguments.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FindLiterallyCalls,
    InlineInlinables,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    RewriteDynamicRaises,
    WithLifting,
)

from shoal.engine.front_end import KernelContext, KernelPasses, quicker
from shoal.engine.lowering import BY_REFERENCE, KernelLower, refuse_foreign
from shoal.engine.on_demand import Demand

__all__ = [
    "Need",
    "SeparateCompiler",
    "compiling",
    "has_wrapper",
    "identify",
    "is_nested",
    "on_level",
]

#: A callee of at most as many instructions, not counting those that pass its arguments, is copied
#: into its callers. LLVM inlines functions of about this size.
SMALL = 100
#: Steps of Numba that find nothing in a kernel: contexts, closures, branches on types, and so on.
NOT_NEEDED = (
    DeadBranchPrune,
    FindLiterallyCalls,
    InlineInlinables,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    RewriteDynamicRaises,
    WithLifting,
)
#: This many new objects before Python looks for garbage: a compiler makes many that stay.
GARBAGE = 200_000


class Need(NamedTuple):
    """A kernel that another one calls by name: where it is defined, and its argument types.

    ``is_for_python`` says that the form with a wrapper is called, which Python calls as well.
    """

    symbol: str
    module: str
    name: str
    args: tuple[Any, ...]
    is_for_python: bool


class Identity(NamedTuple):
    """What tells a kernel from all others, in every process that has the same sources."""

    module: str
    name: str
    digest: str


#: The kernels that other kernels may call by name, by their functions.
_identities: dict[Any, Identity] = {}
_depth = 0


def identify(function: Any, digest: str) -> None:
    """Let a function be called by name; the digest must tell apart all that it depends on."""
    _identities[function] = Identity(function.__module__, function.__qualname__, digest)


def is_nested() -> bool:
    """Return whether a kernel is compiled for another one, and not for Python."""
    return _depth > 1


@contextmanager
def compiling() -> Iterator[None]:
    """Enter the compilation of one kernel. Numba's compiler lock must be held."""
    global _depth
    before = gc.get_threshold()
    if _depth == 0:
        gc.set_threshold(GARBAGE, *before[1:])
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            gc.set_threshold(*before)
            KernelContext.signatures.clear()


@contextmanager
def on_level(depth: int) -> Iterator[None]:
    """Compile as if this many kernels were being compiled: none for what Python calls."""
    global _depth
    before, _depth = _depth, depth
    try:
        yield
    finally:
        _depth = before


def has_wrapper(result: Any) -> bool:
    """Return whether a compiled kernel can be called from Python."""
    engine = result.library.codegen._engine
    return bool(engine.is_symbol_defined(result.fndesc.llvm_cpython_wrapper_name))


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of one kernel, without that of large kernels that it calls."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.needs: dict[str, Need] = {}
        self.demands: dict[str, Demand] = {}
        self.own: Need | None = None

    def add_linking_library(self, library: Any) -> None:
        """Link a callee: by its name if it is large, else by a copy."""
        own = getattr(library, "own", None)
        if own is not None and _is_large(library, own.symbol):
            self.needs[own.symbol] = own
            return
        self.needs.update(getattr(library, "needs", {}))
        self.demands.update(getattr(library, "demands", {}))
        super().add_linking_library(library)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the passes over the whole module, which do all of it again."""
        ll_module.data_layout = self._codegen._data_layout


def _is_large(library: Any, symbol: str) -> bool:
    known: bool | None = getattr(library, "is_large", None)
    if known is None:
        function = library._get_module_for_linking().get_function(symbol)
        known = b"alwaysinline" not in b" ".join(function.attributes)
        if known:
            room = SMALL + sum(1 for _ in function.arguments)
            known = any(
                n >= room for n, _ in enumerate(i for b in function.blocks for i in b.instructions)
            )
        library.is_large = known
    return known


class _ForPython(KernelLower):
    has_wrapper = True


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):  # type: ignore[misc]
    """Numba's lowering, into a `KernelLibrary` and under a name that doesn't change."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[KernelLower]:
        """The class that makes LLVM's instructions."""
        return _ForPython if _depth == 1 else KernelLower

    def run_pass(self, state: Any) -> bool:
        """Lower a function, and remember how others can call it."""
        refuse_foreign(state)
        function = state.func_id
        library = KernelLibrary(state.targetctx.codegen(), function.func_qualname)
        library.enable_object_caching()
        state.library = library
        identity = _identities.get(function.func)
        if identity is not None:
            # A process may have two forms of a kernel, one with a wrapper. Under one name, the
            # wrapper of the later form would find the constants of the earlier one.
            function.unique_id = identity.digest + ("p" if _depth == 1 else "")
        super().run_pass(state)
        if identity is not None:
            symbol = state["cr"].fndesc.llvm_func_name
            library.own = Need(
                symbol, identity.module, identity.name, tuple(state.args), _depth == 1
            )
        return True


class _FrozenFlags(Flags):  # type: ignore[misc]
    """Flags that don't change any more: Numba compares them with each type that it looks up."""

    _known: ClassVar[dict[Flags, _FrozenFlags]] = {}

    @classmethod
    def of(cls, flags: Flags) -> _FrozenFlags:
        """Return the one object with these values."""
        return cls._known.setdefault(Flags(flags), cls(flags))

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)


class _Flags(Flags):  # type: ignore[misc]
    def copy(self) -> _FrozenFlags:
        """Return a copy, which Numba makes to look things up, and never changes."""
        return _FrozenFlags.of(self)


def _install_known(target: Any) -> None:
    """Look into the registries that are known: all have been imported."""
    for registry in list(target._registries):
        target.install_registry(registry)


class SeparateCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler, with `KernelLowering`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.state.flags = _Flags(self.state.flags)
        context = KernelContext.of(self.state.typingctx)
        self.state.typingctx = context
        target = self.state.targetctx
        target.data_model_manager, target.typing_context = BY_REFERENCE, context
        target.load_additional_registries = partial(_install_known, target)

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes from a function to machine code."""
        passes = KernelPasses("kernel")
        passes.passes = [
            (KernelLowering if step is NativeLowering else quicker(step), text)
            for step, text in DefaultPassBuilder.define_nopython_pipeline(self.state).passes
            if step not in NOT_NEEDED
        ]
        passes.finalize()
        return [passes]
