"""Draw docs/demo.svg: a moment of the demo, as a terminal shows it.

Run it with ``.venv/bin/python docs/draw_demo.py`` after the demo has changed, and look at the
picture. It takes as many seconds as the demo has run by then.
"""

from __future__ import annotations

import io
import threading
import time
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from shoal.cli.demo.command import plan_of, warm_up
from shoal.cli.demo.live import view
from shoal.cli.demo.scene import Scene, Watcher
from shoal.cli.demo.stream import PacedSource, RunCapture, make_pipeline, make_stream

PICTURE = Path(__file__).parent / "demo.svg"
#: What is shown: this moment of a demo of this many seconds, just after a release.
SECONDS, MOMENT = 20.0, 12.4
K, RATE, SEED = 20, 2000, 7
WIDTH, HEIGHT = 112, 28
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
GREYS = [(n, n, n) for n in (22, 90, 128, 160, 180, 200, 220, 240)]
THEME = TerminalTheme((22, 27, 34), (201, 209, 217), GREYS)


def moment() -> Scene:
    """Run the demo up to the moment that is drawn."""
    schema, table = make_stream(SECONDS, RATE, SEED)
    pipeline = make_pipeline(schema, K, RATE, str(SEED).encode())
    watcher = Watcher(schema, RATE)
    captured = RunCapture(watcher.traced)
    run = pipeline.run(
        PacedSource(table, RATE, SECONDS, watcher.came),
        captured.open_sink,
        on_bad=captured.bad.extend,
        open_trace=captured.open_trace,
        watch=watcher.counted,
        on_release=watcher.released,
    )
    worker = threading.Thread(target=run.execute, daemon=True)
    worker.start()
    time.sleep(MOMENT)
    scene = watcher.scene()
    run.stop()
    worker.join()
    return scene


def main() -> None:
    """Draw the picture."""
    warm_up(is_plain=True)
    plan = plan_of(make_pipeline(make_stream(1.0, RATE, SEED)[0], K, RATE, None), RATE, SECONDS)
    console = Console(
        file=io.StringIO(), record=True, force_terminal=True, color_system="truecolor",
        width=WIDTH, height=HEIGHT,
    )  # fmt: skip
    console.print(view(moment(), plan, WIDTH, HEIGHT))
    # No fonts of other servers, and spaces stay.
    before, _, after = CONSOLE_SVG_FORMAT.partition("@font-face")
    form = before + after[after.index(".{unique_id}-matrix") :].replace(
        "Fira Code, monospace", FONT
    )
    form = form.replace("<svg ", '<svg xml:space="preserve" ', 1)
    console.save_svg(
        str(PICTURE), title="shoal demo", theme=THEME, code_format=form, unique_id="shoal-demo"
    )


if __name__ == "__main__":
    main()
