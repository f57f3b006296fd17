"""Drive a headless Chromium by the WebDriver protocol, with the standard library."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any, Self

__all__ = ["MISSING", "Browser"]

DRIVER, CHROMIUM = shutil.which("chromedriver"), shutil.which("chromium")
#: Why there is no browser; None if there is one.
MISSING = None if DRIVER and CHROMIUM else "needs chromium and chromedriver (apt: chromium-driver)"


class Browser:
    """A session of a browser; its driver ends with it."""

    def __enter__(self) -> Self:
        assert DRIVER is not None
        self._driver = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._driver.stdout is not None
        port = next(
            found[1]
            for line in self._driver.stdout
            if (found := re.search(r"on port (\d+)\.", line))
        )
        self._base = f"http://127.0.0.1:{port}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        always = {
            "goog:chromeOptions": {"args": arguments, "binary": CHROMIUM},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        made = self._post("", {"capabilities": {"alwaysMatch": always}})
        self._base += f"/{made['sessionId']}"
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call("DELETE", "", None)
        finally:
            self._driver.terminate()
            self._driver.communicate(timeout=10)

    def open(self, page: Path) -> None:
        self._post("/url", {"url": page.as_uri()})

    def run(self, script: str) -> Any:
        """Return what a script returns."""
        return self._post("/execute/sync", {"script": script, "args": []})

    def show(self, *, width: int, dark: bool) -> None:
        """Set the width of the screen, and what the reader prefers."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self._command("Emulation.setDeviceMetricsOverride", metrics)
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", {"features": [feature]})

    def pdf(self) -> str:
        """Return the printed page, as base64."""
        return str(self._post("/print", {}))

    def log(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._post("/se/log", {"type": kind})
        return found

    def _command(self, name: str, params: dict[str, Any]) -> None:
        self._post("/goog/cdp/execute", {"cmd": name, "params": params})

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._call("POST", path, json.dumps(body).encode())

    def _call(self, method: str, path: str, body: bytes | None) -> Any:
        request = urllib.request.Request(self._base + path, body, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]
