"""Draw ``docs/figures/live-page.png``: the live page of the demo, in a headless browser.

python docs/draw_live_page.py [SECONDS [RATE]]
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "figures" / "live-page.png"


def main(seconds: float = 60.0, rate: int = 2000) -> None:
    """Run the demo for some seconds, and take the picture shortly before its end."""
    sys.path.insert(0, str(ROOT))
    from tests.browser import Browser

    words = ["demo", "--page", "--plain", "--seconds", f"{seconds:g}", "--rate", str(rate)]
    demo = subprocess.Popen(
        [sys.executable, "-c", "from shoal.cli import main; main()", *words],
        # The page is opened here, and in no other browser.
        env=os.environ | {"BROWSER": "true"}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert demo.stderr is not None
    url = next(line.split()[1] for line in demo.stderr if line.startswith("page: "))
    with Browser() as browser:
        browser.show(width=1000, dark=False, height=1010)
        browser.open(url)
        time.sleep(seconds * 0.8)
        PICTURE.write_bytes(browser.picture())
    demo.communicate()


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((float, int), sys.argv[1:], strict=False)))
