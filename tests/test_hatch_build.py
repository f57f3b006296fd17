"""What a wheel has besides the sources."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
INTERFACE = "hatchling.builders.hooks.plugin.interface"


class Hook:
    """Stands for the interface of the build tool, which only it has installed."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType(INTERFACE)
    module.BuildHookInterface = Hook  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, INTERFACE, module)
    kind = runpy.run_path(str(ROOT / "hatch_build.py"))["CompiledKernels"]

    def run(version: str = "standard") -> dict[str, Any]:
        data: dict[str, Any] = {"force_include": {}}
        kind(tmp_path).initialize(version, data)
        return data

    return run


def test_by_default_there_are_only_sources(build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOAL_WHEEL_KERNELS", raising=False)
    assert build() == {"force_include": {}}


def test_kernels_go_beside_the_sources_of_a_wheel_for_one_platform(
    build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shoal.engine.cache_folders import SHIPPED

    made = tmp_path / "made" / "shoal"
    for name in ("kernels", "kernels-x86-64-v3", "compare"):
        (made / name).mkdir(parents=True)
    monkeypatch.setenv("SHOAL_WHEEL_KERNELS", "made")
    level = "kernels-x86-64-v3"
    where = f"{SHIPPED.relative_to(SHIPPED.parents[1])}/{level}"
    assert build() == {
        "force_include": {str(made / level): where}, "pure_python": False, "infer_tag": True,
    }  # fmt: skip
    assert build("editable") == {"force_include": {}}


def test_a_folder_without_kernels_is_refused(
    build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_WHEEL_KERNELS", "nothing")
    with pytest.raises(FileNotFoundError, match="shoal warm --cpu x86-64-v3 --into nothing"):
        build()
