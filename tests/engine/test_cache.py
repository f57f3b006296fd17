"""Where compiled kernels are kept, and whose are trusted."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import llvmlite
import numba
import numpy as np
import pytest

from shoal.engine import cache, cache_files, cache_folders

#: Calls a kernel, and tells how often it was loaded and compiled.
CALL = (
    "import numpy, shoal.engine.kernels.predicate as c; c.count_subjects(numpy.arange(3)); "
    "s = c.count_subjects.stats; print(sum(s.cache_hits.values()), sum(s.cache_misses.values()))"
)
LOADED, COMPILED = "1 0", "0 1"


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def python(code: str, **environment: str) -> str:
    done = start(code, **environment)
    out, printed = done.communicate()
    assert done.returncode == 0, printed
    assert not printed, printed
    return out.strip()


def call(own: Path, **environment: str) -> str:
    return python(CALL, SHOAL_CACHE_DIR=str(own), NUMBA_DISABLE_JIT="0", **environment)


def files_in(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


# -- our own -------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))
    return tmp_path / "shoal" / "kernels"


def test_the_folder_is_made_for_its_owner_alone(own: Path) -> None:
    assert cache_folders.own_folder() == own
    assert own.stat().st_mode & 0o777 == 0o700
    assert cache_folders.own_folder() == own


def test_a_folder_that_cannot_be_made_means_no_cache(own: Path) -> None:
    own.parent.write_text("a file is in the way")
    assert cache_folders.own_folder() is None


def test_a_folder_of_somebody_else_is_not_used(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: -1)
    assert cache_folders.own_folder() is None


def test_a_folder_that_cannot_be_written_is_not_used(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cache_folders.own_folder() is None


@pytest.mark.parametrize("mode", [0o777, 0o702, 0o720])
def test_a_folder_that_others_can_write_is_not_used(own: Path, mode: int) -> None:
    own.mkdir(parents=True)
    own.chmod(mode)
    assert cache_folders.own_folder() is None


def test_the_cache_lies_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOAL_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folders.own_folder() == tmp_path / "xdg" / "shoal" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folders.own_folder() == tmp_path / "home" / ".cache" / "shoal" / "kernels"


def test_folders_of_former_sources_go_the_oldest_first(own: Path) -> None:
    for age in range(1, 7):
        former = own / "module" / f"former{age}"
        former.mkdir(parents=True)
        os.utime(former, (10_000 - age, 10_000 - age))
    for _ in range(2):
        cache_files.Locator(files_in, own / "module" / "new").ensure_cache_path()
        left = {path.name for path in (own / "module").iterdir()}
        assert left == {"new", *(f"former{age}" for age in range(1, 1 + cache_files.FORMER_KEPT))}


# -- a shared one --------------------------------------------------------------------------------


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shared"
    (folder / "shoal" / "kernels" / "module" / "digest").mkdir(parents=True)
    (folder / "shoal" / "kernels" / "module" / "digest" / "f.nbi").touch()
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    monkeypatch.setenv("SHOAL_SHARED_CACHE_DIR", str(folder))
    return folder


def refused(caplog: pytest.LogCaptureFixture) -> str:
    """Why the shared folder isn't used."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "shoal"):
        assert cache_folders.read_only_folders() == ()
    [record] = caplog.records
    assert "SHOAL_SHARED_CACHE_DIR isn't used" in record.message
    assert "or unset it" in record.message
    return record.message


def test_a_folder_that_was_named_is_used(shared: Path) -> None:
    assert cache_folders.read_only_folders() == ((shared / "shoal" / "kernels", None),)


def test_where_none_was_named_none_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOAL_SHARED_CACHE_DIR", raising=False)
    assert cache_folders.read_only_folders() == ()


def test_a_folder_of_root_is_used(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() != 0:
        pytest.skip("needs files of root")
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    assert cache_folders.read_only_folders() == ((shared / "shoal" / "kernels", None),)


def test_a_folder_of_any_other_user_is_refused(
    shared: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    if os.getuid() != 0:
        pytest.skip("needs to give files away")
    os.chown(shared / "shoal" / "kernels" / "module" / "digest" / "f.nbi", 4321, -1)
    assert "f.nbi belongs to neither root nor this user" in refused(caplog)


@pytest.mark.parametrize("mode", [0o757, 0o775])
@pytest.mark.parametrize("inside", ["", "shoal", "shoal/kernels/module/digest/f.nbi"])
def test_what_others_can_write_is_refused(shared: Path, inside: str, mode: int, caplog) -> None:
    (shared / inside).chmod(mode)
    assert f"{shared / inside} can be written by others" in refused(caplog)


def test_a_link_out_of_the_folder_is_refused(shared: Path, caplog) -> None:
    (shared / "shoal" / "kernels" / "other").symlink_to("/tmp")
    assert "other is a symbolic link" in refused(caplog)


def test_a_relative_path_is_refused(shared: Path, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    monkeypatch.chdir(shared.parent)
    monkeypatch.setenv("SHOAL_SHARED_CACHE_DIR", "shared")
    assert "it isn't an absolute path" in refused(caplog)


def test_a_folder_that_cannot_be_read_is_refused(
    shared: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "can't be read" in refused(caplog)
    monkeypatch.setenv("SHOAL_SHARED_CACHE_DIR", str(shared / "nothing"))
    assert "can't be read (No such file or directory)" in refused(caplog)


def test_what_is_beside_the_kernels_is_not_looked_at(shared: Path) -> None:
    """The user's own cache may be the shared one of others; results of comparisons are private."""
    private = shared / "shoal" / "compare"
    private.mkdir()
    private.chmod(0o777)
    assert cache_folders.read_only_folders() == ((shared / "shoal" / "kernels", None),)


def test_kernels_for_levels_come_after_those_for_one_processor(
    shared: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cache_folders, "usable", lambda: ("x86-64-v3", "generic"))
    monkeypatch.setattr(cache_folders, "SHIPPED", tmp_path / "compiled")
    inside, shipped = shared / "shoal", tmp_path / "compiled" / "kernels-x86-64-v3"
    for level in ("generic", "x86-64-v3", "x86-64-v9"):
        (inside / f"kernels-{level}").mkdir()
    shipped.mkdir(parents=True)
    found = [
        (inside / "kernels", None),
        (inside / "kernels-x86-64-v3", "x86-64-v3"),
        (inside / "kernels-generic", "generic"),
    ]
    assert cache_folders.read_only_folders() == (*found, (shipped, "x86-64-v3"))
    monkeypatch.setenv("SHOAL_SHIPPED_KERNELS", "off")
    assert cache_folders.read_only_folders() == tuple(found)


def test_kernels_for_better_processors_are_refused(
    shared: Path, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    kernels = shared / "shoal" / "kernels"
    kernels.rename(shared / "shoal" / "kernels-x86-64-v3")
    monkeypatch.setattr(cache_folders, "usable", lambda: ("generic",))
    monkeypatch.setattr(cache_folders, "lacking", lambda _: ["avx2", "fma"])
    said = "its kernels are for x86-64-v3, and this processor lacks avx2, fma"
    assert said in refused(caplog)
    monkeypatch.setattr(cache_folders, "lacking", lambda _: [])
    assert "lacks what NUMBA_CPU_NAME" in refused(caplog)
    shutil.rmtree(shared / "shoal" / "kernels-x86-64-v3")
    assert "has no kernels" in refused(caplog)


# -- compiled ------------------------------------------------------------------------------------


def test_a_kernel_is_compiled_once_and_then_loaded(tmp_path: Path) -> None:
    own, none = tmp_path / "own", tmp_path / "none"
    none.mkdir()
    (none / "shoal").write_text("a file is in the way")
    assert call(own) == COMPILED
    # In a folder that is named by the module, its sources and the compiler.
    module = "shoal.engine.kernels.predicate"
    folder = own / "shoal" / "kernels" / module / cache._digest_of(module)
    assert {path.suffix for path in folder.iterdir()} == {".nbi", ".nbc"}
    assert call(own) == LOADED
    # Without a folder of our own: compiled each time, but for what a shared folder has.
    assert call(none) == COMPILED
    before = files_in(own)
    assert call(none, SHOAL_SHARED_CACHE_DIR=str(own)) == LOADED
    # What a shared folder has isn't copied; what it lacks is compiled, and kept in our own.
    other = tmp_path / "other"
    assert call(other, SHOAL_SHARED_CACHE_DIR=str(own)) == LOADED
    assert not list(other.rglob("*.nb?"))
    for path in folder.glob("*.nbc"):
        path.rename(path.with_suffix(".gone"))
    before = files_in(own)
    assert call(none, SHOAL_SHARED_CACHE_DIR=str(own)) == COMPILED
    assert call(other, SHOAL_SHARED_CACHE_DIR=str(own)) == COMPILED
    assert call(other, SHOAL_SHARED_CACHE_DIR=str(own)) == LOADED
    assert files_in(own) == before


#: Compiles for a level that every processor has.
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


@pytest.mark.nightly
def test_kernels_for_a_level_are_found_by_a_process_for_this_processor(tmp_path: Path) -> None:
    made, own = tmp_path / "made", tmp_path / "own"
    assert call(made, **GENERIC) == COMPILED
    assert [path.name for path in (made / "shoal").iterdir()] == ["kernels-generic"]
    assert call(made, **GENERIC) == LOADED
    for path in (made, *made.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    before = files_in(made)
    assert call(own, SHOAL_SHARED_CACHE_DIR=str(made)) == LOADED
    # Who tells Numba what to compile for gets nothing else.
    other = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}
    code = f"import logging; logging.disable(); {CALL}"
    environment = {"SHOAL_SHARED_CACHE_DIR": str(made), "NUMBA_DISABLE_JIT": "0"}
    assert python(code, SHOAL_CACHE_DIR=str(own), **environment, **other) == COMPILED
    assert files_in(made) == before
    # A folder isn't believed to be for another level than its files say.
    (made / "shoal" / "kernels-generic").rename(made / "shoal" / "kernels")
    assert call(tmp_path / "new", SHOAL_SHARED_CACHE_DIR=str(made)) == COMPILED


@pytest.mark.nightly
def test_kernels_that_came_with_the_package_are_those_of_its_sources(tmp_path: Path) -> None:
    callee = "from shoal.engine.jit import kernel\n@kernel\ndef f(x):\n    return x + {}\n"
    (tmp_path / "below.py").write_text(callee.format(1))
    (tmp_path / "above.py").write_text(
        "import below\nfrom shoal.engine.jit import kernel\n"
        "@kernel\ndef g(x):\n    return below.f(x)\n"
    )
    code = (
        f"import pathlib, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import shoal.engine.cache_folders as folders\n"
        f"folders.SHIPPED = pathlib.Path({str(tmp_path)!r}, 'made', 'shoal')\n"
        "import above\nprint(above.g(1), sum(above.g.stats.cache_hits.values()))"
    )

    def run(own: str, **more: str) -> str:
        return python(code, SHOAL_CACHE_DIR=str(tmp_path / own), NUMBA_DISABLE_JIT="0", **more)

    assert run("made", SHOAL_SHIPPED_KERNELS="off", **GENERIC) == "2 0"
    assert run("a") == "2 1"
    assert run("a", SHOAL_SHIPPED_KERNELS="off") == "2 0"
    # An edit of what a kernel calls: the one that was shipped is never run again.
    (tmp_path / "below.py").write_text(callee.format(100))
    assert run("b") == "101 0"
    assert run("b") == "101 1"
    (tmp_path / "below.py").write_text(callee.format(1))
    # A file that was damaged is compiled.
    for file in (tmp_path / "made").rglob("*.nbc"):
        file.write_bytes(file.read_bytes()[:-1])
    assert run("c") == "2 0"


@pytest.mark.nightly
def test_two_processes_compile_a_kernel_once(tmp_path: Path) -> None:
    running = [start(CALL, SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0") for _ in range(3)]
    assert sorted(process.communicate()[0].strip() for process in running) == [
        COMPILED, LOADED, LOADED,
    ]  # fmt: skip


def test_a_file_that_holds_another_form_is_not_run(tmp_path: Path) -> None:
    """Two processes that compile at once, without locks, can write files of the same name."""
    (tmp_path / "theirs.py").write_text(
        "from shoal.engine.jit import kernel\n@kernel\ndef f(x):\n    return x + 1\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from theirs import f\n"
        "print(f(1), f(1.5), sum(f.stats.cache_hits.values()))"
    )
    environment = {"SHOAL_CACHE_DIR": str(tmp_path / "own"), "NUMBA_DISABLE_JIT": "0"}
    assert python(code, **environment) == "2 2.5 0"
    first, second = sorted((tmp_path / "own").rglob("*.nbc"))
    held = first.read_bytes()
    second.replace(first)
    second.write_bytes(held)
    assert python(code, **environment) == "2 2.5 0"


@pytest.mark.nightly
@pytest.mark.parametrize("ending", ["nbc", "nbi"])
def test_a_file_that_a_power_loss_damaged_is_compiled_again(tmp_path: Path, ending: str) -> None:
    (tmp_path / "theirs.py").write_text(
        "from shoal.engine.jit import kernel\n@kernel\ndef f(x):\n    return x + 1\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from theirs import f\n"
        "print(f(1), sum(f.stats.cache_hits.values()))"
    )
    environment = {"SHOAL_CACHE_DIR": str(tmp_path / "own"), "NUMBA_DISABLE_JIT": "0"}
    assert python(code, **environment) == "2 0"
    (file,) = (tmp_path / "own").rglob(f"*.{ending}")
    whole = file.read_bytes()
    half = whole[: len(whole) // 2]
    for damaged in (b"", half, half + bytes(len(whole) - len(half))):
        file.write_bytes(damaged)
        assert python(code, **environment) == "2 0", len(damaged)
    assert python(code, **environment) == "2 1"


def test_every_cut_of_a_file_is_noticed(tmp_path: Path) -> None:
    files = cache.KernelCache(files_in, tmp_path, is_writable=True)._cache_file
    files.save("a form", [1, 2, 3])
    for file in tmp_path.iterdir():
        whole = file.read_bytes()
        for n in range(len(whole)):
            file.write_bytes(whole[:n])
            assert files.load("a form") is None
            file.write_bytes(whole[:n] + bytes(len(whole) - n))
            assert files.load("a form") is None
        file.write_bytes(whole)
        assert files.load("a form") == [1, 2, 3]


def test_a_form_that_cannot_be_written_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    files = cache.KernelCache(files_in, tmp_path, is_writable=True)._cache_file
    files.save("a form", 1)
    assert files.load("a form") == 1
    # Its file stays, without an index.
    (tmp_path / files._index_name).unlink()
    with monkeypatch.context() as patch, pytest.raises(OSError, match="space"):
        patch.setattr(files, "_save_data", fail)
        files.save("another form", 2)
    assert not (tmp_path / files._index_name).exists()
    assert files.load("another form") is None
    files.save("another form", 2)
    assert files.load("another form") == 2


@pytest.mark.parametrize("compiler", [numba, llvmlite, np])
def test_another_compiler_has_other_folders(
    compiler: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cache._digest_of("shoal.engine.kernels.predicate")
    monkeypatch.setattr(compiler, "__version__", "another")
    assert cache._digest_of("shoal.engine.kernels.predicate") != before


def test_an_edit_compiles_what_depends_on_it(tmp_path: Path) -> None:
    """Numba's own cache would go on with the old callee inside of a cached caller."""
    package = tmp_path / "theirs"
    package.mkdir()
    (package / "__init__.py").touch()
    callee = "from shoal.engine.jit import kernel\n\n@kernel\ndef f(x):\n    return x + {}\n"
    (package / "a.py").write_text(callee.format(1))
    caller = "from shoal.engine.jit import kernel\nfrom theirs.a import f\n"
    (package / "b.py").write_text(f"{caller}\n@kernel\ndef g(x):\n    return f(x)\n")
    (package / "c.py").write_text(callee.format(7))
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import theirs.b, theirs.c\n"
        "print(theirs.b.g(1), theirs.c.f(1))\n"
        "print([sum(x.stats.cache_hits.values()) for x in (theirs.b.g, theirs.c.f)])"
    )

    def run(code: str) -> str:
        return python(code, SHOAL_CACHE_DIR=str(tmp_path / "own"), NUMBA_DISABLE_JIT="0")

    assert run(code) == "2 8\n[0, 0]"
    assert run(code) == "2 8\n[1, 1]"
    (package / "a.py").write_text(callee.format(100))
    assert run(code) == "101 8\n[0, 1]"
    # What is loaded again in one process isn't kept: others may still use what it was.
    again = (
        "import importlib, pathlib\n"
        "path = pathlib.Path(theirs.a.__file__)\n"
        "path.write_text(path.read_text().replace('100', '1000'))\n"
        "importlib.reload(theirs.a); importlib.reload(theirs.b); print(theirs.b.g(1))\n"
    )
    assert run(f"{code}\n{again}") == "101 8\n[1, 1]\n1001"
    assert run(code) == "1001 8\n[0, 1]"


def test_a_caller_of_what_was_loaded_again_is_not_kept(tmp_path: Path) -> None:
    """The caller's own module is what it was, and its folder is named by the old callee."""
    callee = "from shoal.engine.jit import kernel\n@kernel\ndef f(x):\n    return x + 1\n"
    (tmp_path / "below.py").write_text(callee)
    (tmp_path / "above.py").write_text(
        "import below\nfrom shoal.engine.jit import kernel\n"
        "@kernel\ndef g(x):\n    return below.f(x)\n"
    )
    code = (
        f"import importlib, pathlib, sys; sys.path.insert(0, {str(tmp_path)!r}); import above\n"
        "path = pathlib.Path(above.below.__file__)\n"
        "path.write_text(path.read_text().replace('1', '1000'))\n"
        "importlib.reload(above.below); print(above.g(1))\n"
    )
    own = tmp_path / "own"
    assert python(code, SHOAL_CACHE_DIR=str(own), NUMBA_DISABLE_JIT="0") == "1001"
    assert not list(own.rglob("*.nb?"))


def test_a_kernel_is_kept_once_it_was_compiled(tmp_path: Path) -> None:
    code = (
        "from shoal.engine.cache import cache_folder, is_kept; "
        "names = [('shoal.engine.kernels.predicate', n) for n in ('count_subjects', 'meets')];"
        f"{CALL}; print([is_kept(*name) for name in names], cache_folder())"
    )
    printed = python(code, SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0")
    assert printed == f"{COMPILED}\n[True, False] {tmp_path / 'shoal' / 'kernels'}"


def test_plain_python_has_no_cache() -> None:
    code = "from shoal.engine.cache import cache_folder; print(cache_folder())"
    assert python(code, NUMBA_DISABLE_JIT="1") == "None"


def test_it_is_cold_until_the_kernels_nearest_to_a_module_are_there(tmp_path: Path) -> None:
    code = (
        "from shoal.engine.cache import is_cold; import shoal.algorithms.castle;"
        f"{CALL}; names = 'engine.kernels.predicate', 'algorithms.castle', 'errors';"
        "print([is_cold(f'shoal.{name}') for name in names])"
    )
    printed = python(code, SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0")
    assert printed == f"{COMPILED}\n[False, True, True]"


def test_plain_python_is_never_cold() -> None:
    code = "from shoal.engine.cache import is_cold; print(is_cold('shoal.algorithms.castle'))"
    assert python(code, NUMBA_DISABLE_JIT="1") == "False"


MADE = """
import numba
from shoal.engine.jit import kernel
space = {"kernel": kernel, "__name__": "shoal.engine.kernels.predicate"}
exec("@kernel\\ndef f(x):\\n    return x + " + "AMOUNT", space)
print(space["f"](1))
"""


def test_a_kernel_that_a_program_makes_is_not_kept(tmp_path: Path) -> None:
    """Its module has a file, which says nothing about it."""
    for amount in (1000, 2000):
        code = MADE.replace("AMOUNT", str(amount))
        found = python(code, SHOAL_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0")
        assert found == str(amount + 1)


def test_an_edit_of_a_module_beside_an_algorithm_compiles_it_again(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(
        "from shoal.engine.jit import kernel\n@kernel\ndef more(x):\n    return x + 1\n"
    )
    (tmp_path / "mine.py").write_text(
        "from beside import more\nfrom shoal.engine.jit import kernel\n"
        "@kernel\ndef run(x):\n    return more(x)\n"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import mine; print(mine.run(1))"
    environment = {"SHOAL_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}
    assert python(code, **environment) == "2"
    beside = tmp_path / "beside.py"
    beside.write_text(beside.read_text().replace("x + 1", "x + 100"))
    assert python(code, **environment) == "101"


def test_a_folder_that_others_can_replace_is_refused(tmp_path: Path) -> None:
    named = tmp_path / "parent" / "named"
    folder = named / "shoal" / "kernels"
    folder.mkdir(parents=True)
    assert cache_folders._why_unsafe(named, folder) is None
    (tmp_path / "parent").chmod(0o777)
    assert "can be written by others" in str(cache_folders._why_unsafe(named, folder))
    (tmp_path / "parent").chmod(0o1777)
    assert cache_folders._why_unsafe(named, folder) is None
