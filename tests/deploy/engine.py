"""A container engine, and the image of the Containerfile, for tests that run it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: An image that is already there, so that it isn't built again.
IMAGE = "SHOAL_TEST_IMAGE"
#: More options of the build, such as a network, or a file that pip needs.
OPTIONS = "SHOAL_TEST_BUILD_OPTIONS"
BASE = "docker.io/library/debian:bookworm-slim"
STATE = "/var/lib/shoal"


def find_engine() -> tuple[str | None, str]:
    """Return the engine that can run containers; or None, and why there is none."""
    for name in ("podman", "docker"):
        if shutil.which(name) is not None:
            done = subprocess.run([name, "info"], capture_output=True, text=True)
            if done.returncode == 0:
                return name, ""
    return None, "needs a container engine that runs: podman (apt) or docker"


class Engine:
    """The engine, with few words."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of the engine; its output is kept."""
        done = subprocess.run([self.name, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == 0 or not check, done.stderr
        return done

    def inspect(self, *words: object) -> Any:
        """Return what the engine knows of an image, a container or a volume."""
        (found,) = json.loads(self(*words[:1], "inspect", *words[1:]).stdout)
        return found

    def has(self, image: str) -> bool:
        """Tell whether an image is there, or can be fetched."""
        if self("image", "inspect", image, check=False).returncode == 0:
            return True
        return self("pull", image, check=False).returncode == 0

    def build(self, tag: str) -> None:
        """Build the Containerfile as docs/operate.md says."""
        form = ["--format", "docker"] if self.name == "podman" else []
        more = shlex.split(os.environ.get(OPTIONS, ""))
        file = ["-f", ROOT / "Containerfile"]
        self("build", *form, *more, "-t", tag, *file, ROOT)

    @contextmanager
    def volume(self) -> Iterator[str]:
        """Give the name of a new volume, which is removed at the end."""
        name = f"shoal-test-{uuid.uuid4().hex[:12]}"
        self("volume", "create", name)
        try:
            yield name
        finally:
            self("volume", "rm", "--force", name)

    @contextmanager
    def started(self, *words: object) -> Iterator[str]:
        """Start a container beside; give its name, and remove it at the end."""
        name = f"shoal-test-{uuid.uuid4().hex[:12]}"
        self("run", "--detach", "--name", name, *words)
        try:
            yield name
        finally:
            self("rm", "--force", "--volumes", name)
