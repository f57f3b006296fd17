"""Words and progress on stderr, results on stdout."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from shoal.cli import terminal
from shoal.cli.terminal import Progress, print_message, print_result
from shoal.metrics import Summary


class Screen(io.StringIO):
    """A stderr that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def some_figures() -> Summary:
    summary = Summary()
    summary.n_in, summary.n_held = 1234, 34
    n = 1200
    summary.add(
        np.zeros(n, np.int8), np.full(n, 0.25), np.ones(n, np.int64), None,
        np.array([n]), np.array([n]),
    )  # fmt: skip
    return summary


def test_words_go_to_stderr_and_results_to_stdout(capfd):
    print_message("words")
    print_result("result")
    assert capfd.readouterr() == ("result\n", "words\n")


def test_without_a_terminal_there_is_no_progress(capfd):
    with Progress(quiet=False) as progress:
        progress.note("starting")
        progress.show(some_figures())
        progress.print_message("warning: something")
    assert capfd.readouterr() == ("", "warning: something\n")


@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_shows_how_a_run_stands(quiet, monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(terminal, "EVERY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with Progress(quiet=quiet) as progress:
        progress.note("compiling")
        progress.show(some_figures())
        progress.print_message("warning: something [red]")
        if not quiet:
            assert "1,234 rows in, 1,200 published, 34 held" in str(progress._status.status)
            assert "loss 0.250" in str(progress._status.status)
    shown = screen.getvalue()
    assert "warning: something [red]" in shown
    assert ("\x1b" in shown) is not quiet


def test_no_stderr_at_all(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stderr", None)
    print_message("words")
    with Progress(quiet=False) as progress:
        progress.print_message("words")
    assert capfd.readouterr().out == ""
