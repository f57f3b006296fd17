"""Drive a headless Chromium by the WebDriver protocol, with the standard library."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any, Self

__all__ = ["CONTRAST", "CUT_OFF", "MISSING", "OVERFLOW", "SMALL", "UNNAMED", "Browser"]

DRIVER, CHROMIUM = shutil.which("chromedriver"), shutil.which("chromium")
#: Why there is no browser; None if there is one.
MISSING = None if DRIVER and CHROMIUM else "needs chromium and chromedriver (apt: chromium-driver)"

#: Texts whose contrast with what is behind them is below 4.5, or 3 if they are large.
CONTRAST = """
const parts = c => (c.match(/[\\d.]+/g) || []).map(Number);
const light = c => { const [r, g, b] = parts(c).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor, p = parts(c);
    if (p.length === 3 || p[3] > 0) return c; } return "rgb(255, 255, 255)"; };
const bad = [];
for (const e of document.querySelectorAll("body *")) {
  if (e.closest("title, desc, style")) continue;
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
  const s = getComputedStyle(e);
  const ink = e.namespaceURI.endsWith("svg") ? s.fill : s.color;
  const [low, high] = [light(ink), light(behind(e))].sort((a, b) => a - b);
  const least = parseFloat(s.fontSize) >= 24 ? 3 : 4.5;
  if ((high + 0.05) / (low + 0.05) < least) bad.push([e.tagName, e.textContent, ink]);
}
return bad;
"""
#: What lacks a name for those who don't see it.
UNNAMED = """
const bad = [];
for (const e of document.querySelectorAll("svg"))
  if (e.getAttribute("role") !== "img" || !e.getAttribute("aria-label")) bad.push("svg");
for (const e of document.querySelectorAll("figure"))
  if (!e.querySelector("figcaption")?.textContent.trim()) bad.push("figure");
for (const e of document.querySelectorAll("table")) {
  if (!e.caption?.textContent.trim()) bad.push("table");
  for (const h of e.querySelectorAll("th")) if (!h.scope) bad.push("th");
}
for (const e of document.querySelectorAll("a"))
  if (!document.querySelector(e.getAttribute("href"))) bad.push("a");
const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
if (new Set(ids).size !== ids.length) bad.push("ids");
if (!document.documentElement.lang || !document.title) bad.push("document");
return bad;
"""
#: Pictures without a size, and texts that leave their picture.
CUT_OFF = """
const bad = [];
for (const svg of document.querySelectorAll("svg")) {
  if (svg.closest("[hidden]")) continue;
  const frame = svg.getBoundingClientRect();
  if (frame.width < 100 || frame.height < 40) bad.push("svg");
  for (const text of svg.querySelectorAll("text")) {
    const r = text.getBoundingClientRect();
    if (r.left < frame.left - 2 || r.right > frame.right + 2) bad.push(text.textContent);
  }
}
return bad;
"""
#: Texts of pictures that are smaller than 11 pixels on the screen.
SMALL = """
return [...document.querySelectorAll("svg text")].filter(e => !e.closest("[hidden]"))
  .map(e => [e.textContent, parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a])
  .filter(([, pixels]) => pixels < 11);
"""
#: By how many pixels the page is wider than the screen.
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


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
            self._driver.communicate(timeout=60)

    def open(self, page: Path | str) -> None:
        """Open a file, or an address."""
        self._post("/url", {"url": page if isinstance(page, str) else page.as_uri()})

    def press(self, *keys: str) -> None:
        """Press keys, one after another, wherever the focus is."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": strokes}]})

    def picture(self) -> bytes:
        """Return what the screen shows, as PNG."""
        return base64.b64decode(self._call("GET", "/screenshot", None))

    def run(self, script: str, *arguments: object) -> Any:
        """Return what a script returns, or what its promise brings."""
        return self._post("/execute/sync", {"script": script, "args": arguments})

    def show(self, *, width: int, dark: bool, height: int = 900) -> None:
        """Set the size of the screen, and what the reader prefers."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
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
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)["value"]
