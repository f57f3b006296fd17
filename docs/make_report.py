"""Write the report of the demo's stream, and the pictures of docs/report.md.

python docs/make_report.py             docs/demo-report.html
python docs/make_report.py --pictures  docs/figures/report-*.png as well; needs chromium
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa

from shoal.attacks import Run, Setting, attack
from shoal.cli.demo.stream import make_pipeline, make_stream
from shoal.report.build import ReleaseReport, build
from shoal.report.release import Release
from shoal.run.frame import ChunkSource, Gathered
from shoal.run.frame_kinds import chunks_of

DOCS = Path(__file__).parent
K, RATE, SECONDS, SEED = 20, 2000, 3.0, 7
#: Name, width and height of each picture, whether it is dark, and the heading it begins at.
PICTURES = (
    ("report-risk", 1200, 1500, False, "risk-who-can-be-found"),
    ("report-phone", 390, 1400, True, "risk-who-can-be-found"),
)


def demo_report() -> ReleaseReport:
    """Run the stream of the demo without its pauses, and report on it."""
    schema, original = make_stream(SECONDS, RATE, SEED)

    def run(rows: pa.Table, seed: int) -> Run:
        pipeline = make_pipeline(schema, K, RATE, str(seed).encode())
        _, chunks = chunks_of(rows, schema.columns, schema.payload, key="original")
        published, trace = Gathered(), Gathered()
        source = ChunkSource(chunks, schema.columns)
        pipeline.run(source, published.open, on_bad=_none, open_trace=trace.open).execute()
        return Run(published.table(), trace.table())

    pipeline = make_pipeline(schema, K, RATE, None)
    policy, algorithm = pipeline.policy, pipeline.anonymizer.name
    published, trace = run(original, SEED)
    setting = Setting(
        schema, policy, published, original, trace,
        algorithm=algorithm, n_targets=500, rerun=run,
    )  # fmt: skip
    release = Release(
        schema, policy, published, original=original, trace=trace,
        algorithm={"name": algorithm}, publish={"numeric": "range"},
    )  # fmt: skip
    return build(release, attacks=attack(setting, control=0.2))


def _none(bad: list[object]) -> None:
    if bad:
        raise SystemExit("the demo has no bad rows")


def picture(page: Path, name: str, width: int, height: int, dark: bool, heading: str) -> None:
    """Take a screenshot from a heading on."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("pictures need chromium")
    with tempfile.TemporaryDirectory() as folder:
        # A screenshot begins at the top of a page: what is before the heading is taken away.
        html = page.read_text(encoding="utf-8")
        begin, end = html.index("<header>"), html.index(f'<section id="{heading}">')
        part = Path(folder) / "part.html"
        part.write_text(html[:begin] + "<main>" + html[end:], encoding="utf-8")
        subprocess.run(
            [
                chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                *(["--blink-settings=preferredColorScheme=0"] if dark else []),
                f"--window-size={width},{height}",
                f"--screenshot={DOCS / 'figures' / name}.png", part.as_uri(),
            ],
            check=True, capture_output=True,
        )  # fmt: skip


def main() -> None:
    """Write the page, and the pictures if asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pictures", action="store_true")
    chosen = options.parse_args()
    page = DOCS / "demo-report.html"
    demo_report().write(page)
    # People of the demo are made up: anybody may read it.
    page.chmod(0o644)
    print(f"{page}: {page.stat().st_size:,} bytes")
    if chosen.pictures:
        for each in PICTURES:
            picture(page, *each)


if __name__ == "__main__":
    main()
