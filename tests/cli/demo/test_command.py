import os
import re
import signal
import subprocess
import sys

import pytest

from shoal.audit import Report, Verdict
from shoal.cli.demo import command as demo_module
from shoal.cli.demo.scene import Card, Figures, Followed, Scene
from shoal.cli.demo.stream import CHUNKS_PER_SECOND, MOST_AT_ONCE, PacedSource, make_stream
from shoal.cli.demo.text import print_ending
from shoal.errors import ParameterError
from shoal.metrics import Summary
from tests.world import shoal

SUBJECT = re.compile(r"person-\d")


def start(code: str) -> subprocess.Popen[str]:
    """Run some Python beside, without a terminal and without compiling."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(code: str) -> tuple[int, str, str]:
    beside = start(code)
    out, err = beside.communicate(timeout=600)
    return beside.returncode, out, err


def test_plain_lines_then_the_verdict():
    code, out, err = run(
        "import sys; from shoal.cli.demo.command import demo;"
        "sys.exit(demo(seconds=2.5, k=3, rate=60, seed=1))"
    )
    assert code == 0, err
    assert "Every promise is kept." in out
    assert re.search(r"kept  k-anonymity: rows of at least 3 different subjects", out)
    # A machine that is too slow reads fewer rows in that time.
    assert re.search(r" (\d+) rows in, \1 published, 0 suppressed, 0 quarantined, 0 held", out)
    assert "at least 3 people" in err
    assert len(re.findall(r"^ +\d s: \d+ rows in", err, re.MULTILINE)) >= 2
    assert "\x1b" not in out + err


def test_no_subject_is_printed():
    schema, table = make_stream(1.0, rate=60, seed=1)
    assert all(SUBJECT.match(person) for person in table[schema.subject].to_pylist())
    _, out, err = run("from shoal.cli.demo.command import demo; demo(1.0, k=2, rate=60, seed=1)")
    assert "came in as" in out
    assert not SUBJECT.search(out + err)


def test_ctrl_c_ends_it_with_the_verdict_on_what_was_published():
    beside = start(
        "import sys; from shoal.cli.demo.command import demo;"
        "sys.exit(demo(seconds=100.0, k=2, rate=40, seed=1))"
    )
    assert beside.stderr is not None
    while not re.search(r"rows in, [1-9]\d* published", beside.stderr.readline()):
        assert beside.poll() is None
    beside.send_signal(signal.SIGINT)
    out, err = beside.communicate(timeout=600)
    assert beside.returncode == 0, err
    assert "Every promise is kept." in out
    counts = re.search(r"(\d+) rows in, (\d+) published, 0 suppressed, 0 quarantined, (\d+) h", out)
    assert counts is not None
    n_in, n_published, n_held = map(int, counts.groups())
    assert n_in == n_published + n_held
    assert n_published > 0
    assert n_held > 0


def test_the_exit_code_is_the_audits():
    code, out, _ = run(
        """if True:
        import sys
        from shoal.audit import Report, Verdict
        from shoal.cli.demo import stream
        from shoal.cli.demo.command import demo

        broken = Report([Verdict("k-anonymity", "broken", "1 box is too small")], 7)
        stream.RunCapture.judge = lambda self, pipeline, original: broken
        sys.exit(demo(seconds=0.1, k=2, rate=60, seed=1))
        """
    )
    assert code == 1
    assert "A promise is broken." in out


def test_importing_the_command_loads_nothing_heavy():
    code, out, err = run(
        "import sys, shoal.cli.demo.command;"
        "print({'numba', 'numpy', 'pyarrow', 'rich'} & set(sys.modules))"
    )
    assert (code, out.strip()) == (0, "set()"), err


@pytest.mark.parametrize(("seconds", "rate"), [(0, 10), (float("nan"), 10), (1e9, 10), (1, 0)])
def test_what_makes_no_demo_is_refused(seconds: float, rate: int):
    with pytest.raises(ParameterError, match=r"demo\."):
        make_stream(seconds, rate, seed=1)


class Terminal:
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"COLUMNS": "79"}, False),
        ({"LINES": "23"}, False),
    ],
)
def test_where_a_live_view_is_drawn(monkeypatch, environment, expected):
    given = {"TERM": "xterm", "COLUMNS": "80", "LINES": "24", "NO_COLOR": "", **environment}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert demo_module._can_draw() is expected


class Clock:
    """Each look at it takes a while."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_a_paced_source_gives_all_rows_in_their_time():
    _, table = make_stream(0.5, rate=100, seed=1)
    calls: list[tuple[int, int]] = []
    source = PacedSource(
        table, 100, 0.5, lambda batch, first: calls.append((first, batch.num_rows)), Clock(0.1)
    )
    chunks = list(source)
    assert [len(chunk.rows) for chunk in chunks] == [10] * 5
    assert [row for chunk in chunks for row in chunk.rows] == list(range(50))
    assert calls == [(first, 10) for first in range(0, 50, 10)]


def test_after_a_hitch_a_paced_source_doesnt_make_up_for_all_of_it():
    _, table = make_stream(3.0, rate=90, seed=1)
    chunks = list(PacedSource(table, 90, 3.0, clock=Clock(1.0)))
    assert [len(chunk.rows) for chunk in chunks] == [MOST_AT_ONCE * 90 // CHUNKS_PER_SECOND] * 3


def test_a_closed_source_gives_nothing_more():
    _, table = make_stream(3.0, rate=90, seed=1)
    source = PacedSource(table, 90, 3.0, clock=Clock(0.1))
    chunks = iter(source)
    next(chunks)
    source.close()
    assert list(chunks) == []


def test_the_end_shows_one_person_as_an_example(capsys):
    box = ("[30, 40]", "Male", "Alone", "Working")
    card = Card(4, box, ("Asthma", "Eczema", "Gout", "Shingles", "Stroke"), 6, (1,), 0.0)
    followed = Followed(1, ("33", "Male", "Divorced", "Cook", "Gout"), 4, 0.0)
    report = Report([Verdict("delay", "unverifiable", "no trace " * 20)], 3)
    print_ending(Summary(), (followed, card), report, in_colour=False)
    out = capsys.readouterr().out
    assert "came in as   33, Male, Divorced, Cook: Gout" in out
    assert "went out as  [30, 40], Male, Alone, Working" in out
    assert "among 6 people with Asthma, Eczema, Gout, Shingles and 1 more" in out
    assert "The audit can't tell" in out
    assert all(len(line) <= 100 for line in out.splitlines())


def test_a_line_has_the_figures():
    from shoal.cli.demo.text import progress_line

    scene = Scene(3.2, Figures(6000, 4500, 0, 1500, 120, 20, 0.214, 900.0))
    assert progress_line(scene) == (
        "  3 s: 6,000 rows in, 4,500 published in 120 groups, 1,500 held; "
        "loss 21 %, smallest group 20 people"
    )


MAIN = "import sys; from shoal.cli import main; sys.argv[1:] = {!r}; main()"


def test_a_stream_without_a_group_says_that_nothing_was_published_and_why():
    words = ["demo", "--k", "1000", "--rate", "60", "--seconds", "1", "--plain", "--seed", "1"]
    code, out, err = run(MAIN.format(words))
    assert code == 3, err
    assert "promise is kept" not in out
    assert "shoal: nothing was published: " in err
    assert "since no group of them keeps k = 1000" in err
    assert err.endswith("Ask for a smaller --k, or more --seconds.\n")


def test_a_reader_that_goes_away_is_no_broken_promise():
    words = ["demo", "--k", "3", "--rate", "60", "--seconds", "1", "--plain", "--seed", "1"]
    with start(MAIN.format(words)) as beside:
        assert beside.stdout is not None
        assert beside.stderr is not None
        beside.stdout.close()
        err = beside.stderr.read()
    assert beside.returncode == 4, err
    assert "Traceback" not in err
    assert "Exception" not in err


@pytest.mark.parametrize("option", ["--k", "--rate", "--seconds"])
def test_an_option_that_is_too_small_is_refused_in_the_usual_words(option, monkeypatch, capfd):
    assert shoal(monkeypatch, "demo", option, 0) == 2
    assert f"shoal: {option}: must be at least 1; got 0" in capfd.readouterr().err


def test_the_page_of_a_demo_is_opened_and_shows_its_figures():
    code, _, err = run(
        "import json, sys, threading, time, urllib.request, webbrowser\n"
        "from shoal.cli.demo.command import demo\n"
        "def look(url):\n"
        "    end = time.monotonic() + 60\n"
        "    while time.monotonic() < end:\n"
        "        time.sleep(0.2)\n"
        "        found = json.load(urllib.request.urlopen(url + 'recent.json'))\n"
        "        if found['figures'] and found['figures']['n_in']:\n"
        "            print('SEEN', found['job']['name'], found['state']['name'], file=sys.stderr)\n"
        "            return\n"
        "webbrowser.open = lambda url: threading.Thread(target=look, args=[url]).start()\n"
        "sys.exit(demo(seconds=3.0, k=3, rate=60, seed=1, page=True))"
    )
    assert code == 0, err
    assert re.search(r"^page: http://127\.0\.0\.1:\d+/$", err, re.MULTILINE)
    assert "SEEN shoal demo " in err
