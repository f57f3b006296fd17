"""Which processors can run kernels that were compiled for a level."""

from __future__ import annotations

import llvmlite.binding
import numba
import pytest

from shoal.engine import cpu_levels


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A processor that has all there is, and nobody told Numba what to compile for."""
    features = dict.fromkeys(cpu_levels.LEVELS["x86-64-v3"], True)
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: features)
    for name, value in (("CPU_NAME", None), ("CPU_FEATURES", None), ("ENABLE_AVX", 1)):
        monkeypatch.setattr(numba.config, name, value)
    return features


def test_a_processor_that_has_all_features_runs_them(host: dict[str, bool]) -> None:
    assert cpu_levels.usable() == ("x86-64-v3", "generic")
    assert cpu_levels.compiled_for() is None


@pytest.mark.parametrize("feature", sorted(cpu_levels.LEVELS["x86-64-v3"]))
def test_a_processor_that_lacks_one_does_not(host: dict[str, bool], feature: str) -> None:
    host[feature] = False
    assert cpu_levels.lacking("x86-64-v3") == [feature]
    assert cpu_levels.usable() == ("generic",)
    del host[feature]
    assert cpu_levels.lacking("x86-64-v3") == [feature]


def test_a_processor_of_another_kind_has_none(
    host: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: {"neon": True})
    assert cpu_levels.usable() == ("generic",)


def test_what_numba_was_told_to_avoid_is_not_there(
    host: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "ENABLE_AVX", 0)
    assert cpu_levels.lacking("x86-64-v3") == ["avx", "avx2"]


def test_who_says_what_to_compile_for_gets_that_alone(
    host: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CPU_FEATURES", "+sse2")
    assert cpu_levels.usable() == ()
    monkeypatch.setattr(numba.config, "CPU_NAME", "x86-64-v3")
    assert cpu_levels.usable() == ()
    monkeypatch.setattr(numba.config, "CPU_FEATURES", "")
    assert cpu_levels.usable() == ("x86-64-v3",)
    assert cpu_levels.compiled_for() == "x86-64-v3"
    monkeypatch.setattr(numba.config, "CPU_NAME", "skylake")
    assert cpu_levels.usable() == ()
    assert cpu_levels.compiled_for() is None


def test_llvm_knows_the_features_by_these_names() -> None:
    """A name that LLVM doesn't know would keep the kernels from everybody."""
    found = llvmlite.binding.get_host_cpu_features()
    if "sse2" not in found:
        pytest.skip("another kind of processor")
    assert set(found) >= cpu_levels.LEVELS["x86-64-v3"]
