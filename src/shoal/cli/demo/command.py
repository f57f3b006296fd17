"""``shoal demo``: a live stream of made-up people, anonymized before your eyes.

On a terminal it is a live view; elsewhere a line a second. Then the audit says whether what was
published keeps the promise. Rows, output and trace stay in memory.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

# Whatever takes time to import is imported where it is used: `shoal --help` is to be quick.
if TYPE_CHECKING:
    from types import FrameType

    from shoal.cli.demo.live import Plan
    from shoal.cli.demo.scene import Watcher
    from shoal.run.pipeline import Pipeline, Run

__all__ = ["demo"]

FRAMES_PER_SECOND = 15
#: The least terminal that a live view fits in.
LEAST_WIDTH, LEAST_HEIGHT = 80, 24
#: So few rows are enough to compile everything.
WARM_UP_ROWS = 200
#: The exit code where Ctrl-C comes before there is anything to judge.
INTERRUPTED = 130


def demo(
    seconds: float = 20.0,
    k: int = 20,
    rate: int = 2000,
    seed: int | None = None,
    plain: bool = False,
) -> int:
    """Publish a made-up stream in real time, show it, and let the audit judge it.

    Parameters
    ----------
    seconds
        How long it lasts. Ctrl-C ends it earlier, with the verdict on what was published.
    k
        How many people each group has at least.
    rate
        How many rows come in a second.
    seed
        For the same people and the same groups again.
    plain
        Print lines even where there is a terminal.

    Returns
    -------
    int
        The exit code: 0, or the audit's if it found a promise broken or couldn't tell; 130 if
        Ctrl-C came before the stream began.
    """
    is_plain = plain or not _can_draw()
    try:
        with _waiting("getting ready", is_plain):
            from shoal.cli.demo.scene import Watcher
            from shoal.cli.demo.stream import Paced, Story, recipe, stream

            schema, table = stream(seconds, rate, secrets.randbits(32) if seed is None else seed)
            key = None if seed is None else str(seed).encode()
            pipeline = recipe(schema, k, rate, key)
        _warm_up(is_plain)
    except KeyboardInterrupt:
        print("shoal demo: stopped before the stream began", file=sys.stderr)
        return INTERRUPTED
    watcher = Watcher(schema, rate)
    story = Story(watcher.traced)
    source = Paced(table, rate, seconds, watcher.came)
    run = pipeline.run(
        source,
        story.open_sink,
        on_bad=story.bad.extend,
        open_trace=story.open_trace,
        watch=watcher.counted,
        on_release=watcher.released,
    )
    plan = _plan(pipeline, rate, seconds)
    show = _lines if is_plain else _screen
    with show(watcher, plan) as draw:
        _go(run, draw, pause=1.0 if is_plain else 1 / FRAMES_PER_SECOND)
    source.close()
    with _waiting("the audit looks at what was published", is_plain):
        report = story.judge(pipeline, table.slice(0, run.summary.n_in))

    from shoal.cli.demo.words import tell

    tell(run.summary, watcher.example, report, in_colour=not is_plain and sys.stdout.isatty())
    return report.exit_code


def _can_draw() -> bool:
    """Whether there is a terminal that a live view can be drawn on."""
    width, height = shutil.get_terminal_size()
    return (
        sys.stderr.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
        and (sys.stderr.encoding or "").lower().startswith("utf")
        and width >= LEAST_WIDTH
        and height >= LEAST_HEIGHT
    )


def _plan(pipeline: Pipeline, rate: int, seconds: float) -> Plan:
    from shoal.cli.demo.live import Plan

    policy = pipeline.policy
    assert policy.delay is not None
    assert policy.delay.rows is not None
    return Plan(policy.k, policy.diversity[0].needed, policy.delay.rows, rate, seconds)


def _warm_up(is_plain: bool) -> None:
    """Run a short stream, so that nothing is compiled once the clock is ticking."""
    import numba

    from shoal.cli.demo.stream import Paced, Story, recipe, stream
    from shoal.engine.cache import has_cache, is_cold

    # Numba makes the attributes of its configuration at run time.
    config: Any = numba.config
    if config.DISABLE_JIT:
        return
    words = "warming up"
    if is_cold("shoal.algorithms.castle") and not has_cache():
        words = "compiling; there is no folder to keep the result in"
    elif is_cold("shoal.algorithms.castle"):
        words = "compiling, once for this version; this takes a minute or two"
    with _waiting(words, is_plain):
        schema, table = stream(1.0, WARM_UP_ROWS, seed=0)
        story = Story()
        recipe(schema, 2, WARM_UP_ROWS, None).run(
            Paced(table, 1e6, 1.0),
            story.open_sink,
            on_bad=story.bad.extend,
            open_trace=story.open_trace,
        ).go()


@contextmanager
def _waiting(words: str, is_plain: bool) -> Iterator[None]:
    """Say what takes a moment: with a spinner, or in a line."""
    if is_plain:
        print(f"shoal demo: {words}...", file=sys.stderr, flush=True)
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{words}…"):
        yield


def _go(run: Run, draw: Callable[[], None], pause: float) -> None:
    """Let the run go beside, and draw until it is done. Ctrl-C stops it."""
    failures: list[BaseException] = []

    def go() -> None:
        try:
            run.go()
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=go, name="shoal-demo", daemon=True)
    with _stopped_by_ctrl_c(run):
        worker.start()
        while worker.is_alive():
            draw()
            worker.join(pause)
    if failures:
        raise failures[0]


@contextmanager
def _stopped_by_ctrl_c(run: Run) -> Iterator[None]:
    """Let the first Ctrl-C stop the run; a second one is as ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run.stop()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _screen(watcher: Watcher, plan: Plan) -> Iterator[Callable[[], None]]:
    """A live view, on a screen of its own that is gone afterwards."""
    from rich.console import Console
    from rich.live import Live

    from shoal.cli.demo.live import view

    console = Console(stderr=True)
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def draw() -> None:
            # A terminal that is made smaller meanwhile cuts the view.
            width, height = max(console.width, LEAST_WIDTH), max(console.height, LEAST_HEIGHT)
            live.update(view(watcher.scene(), plan, width, height), refresh=True)

        yield draw


@contextmanager
def _lines(watcher: Watcher, plan: Plan) -> Iterator[Callable[[], None]]:
    """A line each time."""
    from shoal.cli.demo.words import line

    print(f"shoal demo: {plan.words}", file=sys.stderr, flush=True)

    def draw() -> None:
        scene = watcher.scene()
        if scene.figures.n_in:
            print(line(scene), file=sys.stderr, flush=True)

    yield draw


if __name__ == "__main__":
    sys.exit(demo())
