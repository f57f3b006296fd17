"""Put compiled kernels into a wheel: ``SHOAL_WHEEL_KERNELS=FOLDER pip wheel --no-deps .``.

FOLDER is what ``shoal warm --cpu x86-64-v3 --into FOLDER`` made; `make wheel` does both. Without
the variable a wheel has no kernels, and is the same on all platforms.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the folder, and names the platform that it is for."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say what the wheel has besides the sources."""
        named = os.environ.get("SHOAL_WHEEL_KERNELS")
        if not named or version != "standard":
            return
        folders = sorted(Path(self.root, named, "shoal").glob("kernels-*"))
        if not folders:
            raise FileNotFoundError(
                f"SHOAL_WHEEL_KERNELS: {named} has no kernels for a level of processors. Make them "
                f"with `shoal warm --cpu x86-64-v3 --into {named}`."
            )
        for folder in folders:
            build_data["force_include"][str(folder)] = f"shoal/compiled/{folder.name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
