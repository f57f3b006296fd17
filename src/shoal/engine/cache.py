"""Keep compiled kernels on disk, each for exactly the sources that it was compiled from.

Numba's own cache compares the digest of the file that defines a function, and doesn't notice an
edit in another file: an old privacy predicate could keep running inside a cached caller. Here the
kernels of a module are in a folder that is named by a digest of the module and of all that it
imports, and of the compiler's versions, so an edit recompiles the modules that depend on it, and no
others. New kernels go into the user's own folder. Behind it are folders that are only read: one
that users share, and one that came with the package.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import trigger_event
from numba.core.sigutils import normalize_signature
from numba.core.types import unliteral

from shoal.engine.cache_files import FormFiles, Locator
from shoal.engine.cache_folders import own_folder, read_only_folders
from shoal.engine.linking import Need, compiling, has_wrapper, identify, is_nested, on_level
from shoal.engine.on_demand import Demand, declare, kernel_of, promise, returned_by, serve_with
from shoal.engine.sources import NOT_COMPILED, closure, digest_of, imports_of, path_of

__all__ = ["KernelCache", "cache_folder", "is_cold", "is_kept", "keep"]


_own = None if numba.config.DISABLE_JIT else own_folder()
_read_only = () if numba.config.DISABLE_JIT else read_only_folders()
#: Whether a module was loaded again, so that code in this process may have other sources.
_is_reloaded = False
#: The modules with kernels that were imported, and the digests that name their folders.
_digests: dict[str, str] = {}
#: The kernels that were defined, by module and name; those inside functions are not among them.
_defined: dict[tuple[str, str], Any] = {}


def keep(compiled: Any, *, keeps_constants: bool = False, on_demand: bool = False) -> None:
    """Have a compiled function kept in the cache, if there is one.

    Parameters
    ----------
    compiled
        What Numba made of the function.
    keeps_constants
        Whether it gets a form of its own for each constant argument.
    on_demand
        Whether it is compiled when a kernel first calls it, and not with its callers.
    """
    global _own, _read_only, _is_reloaded
    function = compiled.py_func
    module, name = function.__module__, function.__qualname__
    is_loaded_again = (module, name) in _defined
    if is_loaded_again:
        # A module is loaded again, maybe after an edit, while others still use what it was: from
        # now on sources on disk say nothing about the code in this process.
        _own, _read_only = None, ()
        _is_reloaded = True
    if "<locals>" not in name:
        _defined[module, name] = compiled
    if str(path_of(module)) != function.__code__.co_filename:
        # It was typed in, or made by a program: no file says what it does.
        _compile_alone(compiled, None, keeps_constants)
        return
    if module not in _digests:
        _digests[module] = _digest_of(module)
    place = Path(module, _digests[module])
    if "<locals>" not in name and not is_loaded_again:
        identify(function, _digests[module])
        if on_demand:
            declare(compiled, _digests[module])
    kept: KernelCache | None = None
    for folder, level in reversed(_read_only):
        if (folder / place).is_dir():
            kept = KernelCache(
                function, folder / place, is_writable=False, level=level, behind=kept
            )
    if _own is not None:
        kept = KernelCache(function, _own / place, is_writable=True, behind=kept)
    if kept is not None:
        compiled._cache = kept
    _compile_alone(compiled, f"{place}/{name}", keeps_constants)


def _digest_of(module: str) -> str:
    """Return what the compiled kernels of a module depend on: its sources, and the compiler."""
    sources = digest_of(closure([module], NOT_COMPILED))
    made_by = f"{sources} numba {numba.__version__} llvmlite {llvmlite.__version__}"
    # Numba's types of NumPy's functions depend on its version.
    made_by += f" numpy {'.'.join(np.__version__.split('.')[:2])}"
    if numba.config.BOUNDSCHECK:
        # Kernels that check their indices are others.
        made_by += " boundscheck"
    return hashlib.blake2b(made_by.encode(), digest_size=12).hexdigest()


def is_kept(module: str, name: str) -> bool:
    """Return whether a compiled form of a kernel is in the cache."""
    compiled = _defined.get((module, name))
    kept = getattr(compiled, "_cache", None)
    return isinstance(kept, KernelCache) and kept.is_there()


def is_cold(module: str) -> bool:
    """Return whether the kernels that a module uses will have to be compiled first.

    It looks at the kernels nearest to the module: its own, or else those that it imports.
    """
    if numba.config.DISABLE_JIT:
        return False
    near, seen = {module}, set(NOT_COMPILED)
    while near and not near & _digests.keys():
        seen |= near
        near = {other for name in near for other in imports_of(name)} - seen
    return not any(
        any((folder / name / _digests[name]).glob("*.nbi"))
        for name in near & _digests.keys()
        for folder in (_own, *(one.folder for one in _read_only))
        if folder is not None
    )


def cache_folder() -> Path | None:
    """Return the folder that newly compiled kernels are kept in; None if there is none."""
    return _own


class _Files(CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's way to write a compiled function to files, in a folder of our own.

    Numba's constructor would look for a folder by its own rules, and its environment variables
    could lead it away from the folder that is named by the sources.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = Locator(function, folder)
        self._filename_base = self.get_filename_base(function.__qualname__, sys.abiflags)

    def reduce(self, cres: Any) -> Any:
        """Return what is written: Numba's part, and the kernels that are called by name."""
        library = cres.library
        calls = tuple(library.needs.values()), tuple(library.demands.values())
        return super().reduce(cres), library.own, calls

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return a kernel as it was compiled, after those that it calls; None if one is gone."""
        data, own, (needs, demands) = payload
        if not all(map(_load, needs)):
            return None
        if any(kernel_of(demand) is None for demand in demands):
            return None
        promise(demands)
        cres = super().rebuild(target_context, data)
        cres.library.own, cres.library.needs = own, {need.symbol: need for need in needs}
        cres.library.demands = {demand.key: demand for demand in demands}
        return cres


def _load(need: Need) -> bool:
    """Load or compile a kernel that is called by name; return whether it is there."""
    compiled = _defined.get((need.module, need.name))
    if compiled is None:
        return False
    engine = compiled.targetctx.codegen()._engine
    if not engine.is_symbol_defined(need.symbol):
        with on_level(0 if need.is_for_python else 1):
            compiled.compile_form(need.args)
    return bool(engine.is_symbol_defined(need.symbol))


def _serve(demand: Demand) -> int:
    """Load or compile a kernel that is called by another one for the first time."""
    compiled = kernel_of(demand)
    # It is compiled for a kernel, one level below what Python calls.
    with global_compiler_lock, compiling():
        compiled.compile(demand.args)
        found = compiled.overloads[demand.args]
    address: int = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
    return address


serve_with(_serve)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cached forms of one kernel, one for each signature.

    Parameters
    ----------
    function
        The kernel, not compiled.
    folder
        Where it is kept.
    is_writable
        Whether newly compiled forms are added.
    level
        The level of processors that all forms there were compiled for, if it is one.
    behind
        Where else to look for forms that aren't there.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        folder: Path,
        *,
        is_writable: bool,
        level: str | None = None,
        behind: KernelCache | None = None,
    ) -> None:
        self._impl_class = functools.partial(_Files, folder=folder)
        super().__init__(function)
        self._cache_file = FormFiles(self._cache_path, self._impl.filename_base, folder.name)
        self._is_writable, self._level, self._behind = is_writable, level, behind

    def is_there(self) -> bool:
        """Return whether there is a compiled form for any signature."""
        here = Path(self._cache_path, self._cache_file._index_name)
        return here.exists() or (self._behind is not None and self._behind.is_there())

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return what a compiled form is found by: also, whether only kernels can call it."""
        signature, target, code = super()._index_key(sig, codegen)
        if self._level is not None:
            target = target[0], self._level, ""
        return signature, target, code, is_nested()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled form for a signature, or None."""
        if _is_reloaded:
            return None
        found = super().load_overload(sig, target_context)
        if found is None and self._behind is not None:
            found = self._behind.load_overload(sig, target_context)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Add a compiled form; a disk that can't take it is no reason to fail."""
        if self._is_writable and not _is_reloaded:
            with contextlib.suppress(OSError):
                super().save_overload(sig, data)


# -- one process compiles, others wait for it ----------------------------------------------------


def _compile_alone(compiled: Any, name: str | None, keeps_constants: bool) -> None:
    """Have other processes wait that need the same kernel, and then load it from the cache."""

    def compile_or_load(signature: Any) -> Any:
        args, return_type = normalize_signature(signature)
        args = tuple(args if keeps_constants else map(unliteral, args))
        with global_compiler_lock:
            with compiling():
                known = compiled.overloads.get(args)
                if known is not None and (is_nested() or has_wrapper(known)):
                    return known.entry_point
            return compile_form(args, return_type)

    def compile_form(args: Any, return_type: Any = None) -> Any:
        return_type = return_type or returned_by(compiled.py_func)
        with global_compiler_lock, compiling(), compiled._compiling_counter:
            with _alone(name, _own):
                found = compiled._cache.load_overload(args, compiled.targetctx)
                if found is not None:
                    compiled._cache_hits[args] += 1
                    library = [found.library]
                    compiled.targetctx.insert_user_function(
                        found.entry_point, found.fndesc, library
                    )
                else:
                    compiled._cache_misses[args] += 1
                    with trigger_event("numba:compile", data={"dispatcher": compiled}):
                        found = compiled._compiler.compile(args, return_type)
                    compiled._cache.save_overload(args, found)
            if has_wrapper(found):
                compiled.add_overload(found)
            else:
                # Python calls another form, which is compiled when that happens.
                compiled.overloads.setdefault(args, found)
            return found.entry_point

    compiled.compile_form = compile_form
    compiled.compile = compile_or_load


_held: set[int] = set()


@functools.cache
def _lock_file(folder: Path) -> IO[bytes]:
    return (folder / "lock").open("ab")


@contextlib.contextmanager
def _alone(name: str | None, folder: Path | None) -> Iterator[None]:
    """Hold the lock of a kernel: a byte, far beyond the end of one empty file.

    A kernel is compiled with the kernels that it calls, so locks are taken in the order of calls,
    and two processes can't wait for each other. Numba's own lock comes first, for threads.
    """
    if name is None or folder is None:
        yield
        return
    place = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")
    with contextlib.ExitStack() as stack:
        if place not in _held:
            # Without a lock kernels are compiled twice, or again if two processes wrote a file of
            # one name. It is a waste and nothing worse: each file names the form in it.
            with contextlib.suppress(OSError):
                file = _lock_file(folder)
                fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
                stack.callback(fcntl.lockf, file, fcntl.LOCK_UN, 1, place)
            _held.add(place)
            stack.callback(_held.discard, place)
        yield
