"""``shoal demo``: anonymize a live stream of made-up people, and show it.

On a terminal it draws a live view; elsewhere it prints a line per second. At the end the audit
checks what was published. Rows, output and trace stay in memory.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

# Slow imports are made where they are used, so that `shoal --help` is quick.
if TYPE_CHECKING:
    from types import FrameType

    from shoal.cli.demo.live import Plan
    from shoal.cli.demo.scene import Watcher
    from shoal.metrics import Summary
    from shoal.run.pipeline import Pipeline, Run

__all__ = ["demo", "plan_of", "warm_up"]

FRAMES_PER_SECOND = 15
#: The smallest terminal that a live view fits in.
LEAST_WIDTH, LEAST_HEIGHT = 80, 24
#: Enough rows to compile everything.
WARM_UP_ROWS = 200
#: The exit code after Ctrl-C before the stream began.
INTERRUPTED = 130


def demo(
    seconds: float = 20.0,
    k: int = 20,
    rate: int = 2000,
    seed: int | None = None,
    plain: bool = False,
    page: bool = False,
) -> int:
    """Anonymize a made-up stream in real time, show it, and audit the result.

    Parameters
    ----------
    seconds
        Its duration. Ctrl-C ends it earlier, with an audit of what was published.
    k
        The least number of people in a group.
    rate
        Rows per second.
    seed
        For repeatable people and groups.
    plain
        Print lines even on a terminal.
    page
        Open the live page of the run in a browser.

    Returns
    -------
    int
        The exit code: that of the audit, 3 if nothing was published, or 130 if Ctrl-C came before
        the stream began.
    """
    is_plain = plain or not _can_draw()
    try:
        with _waiting("getting ready", is_plain):
            from shoal.cli.demo.scene import Watcher
            from shoal.cli.demo.stream import PacedSource, RunCapture, make_pipeline, make_stream

            schema, table = make_stream(
                seconds, rate, secrets.randbits(32) if seed is None else seed
            )
            key = None if seed is None else str(seed).encode()
            pipeline = make_pipeline(schema, k, rate, key)
        warm_up(is_plain)
    except KeyboardInterrupt:
        print("shoal demo: stopped before the stream began", file=sys.stderr)
        return INTERRUPTED
    watcher = Watcher(schema, rate)
    captured = RunCapture(watcher.traced)
    source = PacedSource(table, rate, seconds, watcher.came)
    plan = plan_of(pipeline, rate, seconds)
    show = _lines if is_plain else _screen
    with ExitStack() as stack:
        watch: Callable[[Summary], None] = watcher.counted
        if page:
            from shoal.cli.demo.page import DemoPage

            shown = stack.enter_context(DemoPage(pipeline, watcher.counted))
            watch = shown.show
        run = pipeline.run(
            source,
            captured.open_sink,
            on_bad=captured.bad.extend,
            open_trace=captured.open_trace,
            watch=watch,
            on_release=watcher.released,
        )
        with show(watcher, plan) as draw:
            _run_and_draw(run, draw, pause=1.0 if is_plain else 1 / FRAMES_PER_SECOND)
        source.close()
    with _waiting("auditing what was published", is_plain):
        report = captured.judge(pipeline, table.slice(0, run.summary.n_in))

    from shoal.cli.demo.text import print_ending
    from shoal.cli.terminal import print_message
    from shoal.errors import DataError
    from shoal.metrics.unpublished import why_nothing

    problem = None
    if not run.interrupted and report.verdict != "broken":
        problem = why_nothing(pipeline.policy, run.summary, run.shortfall)
    print_ending(
        run.summary,
        watcher.example,
        report,
        in_colour=not is_plain and sys.stdout.isatty(),
        problem=problem,
    )
    if problem is not None:
        print_message(f"shoal: {problem} Ask for a smaller --k, or more --seconds.")
        return DataError.exit_code
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


def plan_of(pipeline: Pipeline, rate: int, seconds: float) -> Plan:
    """Return what the view tells about a pipeline."""
    from shoal.cli.demo.live import Plan

    policy = pipeline.policy
    assert policy.delay is not None
    assert policy.delay.rows is not None
    return Plan(policy.k, policy.diversity[0].needed, policy.delay.rows, rate, seconds)


def warm_up(is_plain: bool) -> int:
    """Run a short stream, so that nothing has to be compiled during the demo.

    Return the number of kernels that were compiled.
    """
    from shoal.algorithms import find
    from shoal.cli.demo.stream import (
        ALGORITHM,
        PacedSource,
        RunCapture,
        make_pipeline,
        make_stream,
    )
    from shoal.cli.terminal import COMPILING, compiling_bar
    from shoal.engine.compile_watch import CompileWatch
    from shoal.engine.jit import IS_PLAIN

    if IS_PLAIN:
        return 0
    said: list[str] = []
    with ExitStack() as stack:
        update = stack.enter_context(_waiting("warming up", is_plain))

        def show(watch: CompileWatch) -> None:
            if not is_plain:
                update(compiling_bar(watch.n_done, watch.n_expected))
            elif not said:
                said.append(f"{COMPILING} ({watch.n_expected} of them)")
                update(said[0])

        watch = CompileWatch(find(ALGORITHM), show)
        stack.enter_context(watch.watching())
        schema, table = make_stream(1.0, WARM_UP_ROWS, seed=0)
        captured = RunCapture()
        make_pipeline(schema, 2, WARM_UP_ROWS, None).run(
            PacedSource(table, 1e6, 1.0),
            captured.open_sink,
            on_bad=captured.bad.extend,
            open_trace=captured.open_trace,
        ).execute()
    return watch.n_done


@contextmanager
def _waiting(text: str, is_plain: bool) -> Iterator[Callable[[Any], None]]:
    """Show what is going on, with a spinner or in a line; yield what shows something else."""
    if is_plain:
        from shoal.cli.terminal import print_message

        def say(words: str) -> None:
            print_message(f"shoal demo: {words}...")

        say(text)
        yield say
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{text}…") as status:
        yield status.update


def _run_and_draw(run: Run, draw: Callable[[], None], pause: float) -> None:
    """Execute the run in a thread, and draw until it ends. Ctrl-C stops it."""
    failures: list[BaseException] = []

    def execute() -> None:
        try:
            run.execute()
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=execute, name="shoal-demo", daemon=True)
    with _stopped_by_ctrl_c(run):
        worker.start()
        while worker.is_alive():
            draw()
            worker.join(pause)
    if failures:
        raise failures[0]


@contextmanager
def _stopped_by_ctrl_c(run: Run) -> Iterator[None]:
    """Make the first Ctrl-C stop the run; a second one raises KeyboardInterrupt."""
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
    """Draw a live view on the alternate screen of the terminal."""
    from rich.console import Console
    from rich.live import Live

    from shoal.cli.demo.live import view

    console = Console(stderr=True)
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def draw() -> None:
            # A terminal that was made smaller cuts the view off.
            width, height = max(console.width, LEAST_WIDTH), max(console.height, LEAST_HEIGHT)
            live.update(view(watcher.scene(), plan, width, height), refresh=True)

        yield draw


@contextmanager
def _lines(watcher: Watcher, plan: Plan) -> Iterator[Callable[[], None]]:
    """Print a line for each drawing."""
    from shoal.cli.demo.text import progress_line
    from shoal.cli.terminal import print_message

    print_message(f"shoal demo: {plan.words}")

    def draw() -> None:
        scene = watcher.scene()
        if scene.figures.n_in:
            print_message(progress_line(scene))

    yield draw


if __name__ == "__main__":
    sys.exit(demo())
