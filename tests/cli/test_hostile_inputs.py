"""Whatever a command is given, it ends in time, with a documented code, and shows no value."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterable

import pytest

from tests.cli.hostile_inputs import CANARY, Attempt, Hostility
from tests.world import shoal

#: How long, in seconds, a command may take. A busy machine needs far less.
SECONDS = 300
#: Done, wrong usage or job, bad data, the environment, a checkpoint, an audit that can't tell.
CODES = {0, 1, 2, 3, 4, 5, 6}
#: The longest message that anybody reads.
MOST_CHARACTERS = 20_000


class TooLongError(BaseException):
    """The command hasn't ended in time; not an Exception, so that no command catches it."""


@pytest.fixture
def hostility(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one of the names for an output is a line feed
    return Hostility(tmp_path, seed=7)


@pytest.fixture
def judge(monkeypatch, capfd):
    """Runs commands; gives what is wrong with their ends."""

    def ring(*_):
        raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)

    def run(attempts: Iterable[Attempt]) -> tuple[int, list[str]]:
        wrong, n_attempts = [], 0
        for attempt in attempts:
            n_attempts += 1
            signal.alarm(SECONDS)
            try:
                code = shoal(monkeypatch, *attempt.words)
            except TooLongError:
                wrong.append(f"{attempt.name}: no end after {SECONDS} s")
                continue
            finally:
                signal.alarm(0)
            said = "".join(capfd.readouterr())
            if code not in CODES:
                wrong.append(f"{attempt.name}: exit {code}: {said[-300:]}")
            if CANARY in said:
                wrong.append(f"{attempt.name}: shows a value")
            if len(said) > MOST_CHARACTERS:
                wrong.append(f"{attempt.name}: says {len(said):,} characters")
        return n_attempts, wrong

    yield run
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def some(attempts: Iterable[Attempt], every: int) -> Iterable[Attempt]:
    return itertools.islice(attempts, 0, None, every)


def test_some_of_everything(hostility, judge):
    """A few seconds of what the tests below do for minutes; hierarchies all of them."""
    attempts = [
        some(hostility.jobs(), 4),
        hostility.hierarchies(),
        some(hostility.strange_files(), 6),
        hostility.damaged(12),
        some(hostility.columns(), 41),
        some(hostility.texts(1 << 15), 3),
    ]
    n_attempts, wrong = judge(itertools.chain.from_iterable(attempts))
    assert n_attempts > 60
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_jobs_beyond_all_bounds(hostility, judge):
    n_attempts, wrong = judge(hostility.jobs())
    assert n_attempts > 40
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_files_that_are_none(hostility, judge):
    n_attempts, wrong = judge(hostility.strange_files())
    assert n_attempts > 80
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_columns_of_every_type_in_every_role(hostility, judge):
    n_attempts, wrong = judge(hostility.columns())
    assert n_attempts > 200
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_many_damaged_files(tmp_path, judge, seed):
    _, wrong = judge(Hostility(tmp_path, seed).damaged(400))
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_texts_without_end(hostility, judge):
    _, wrong = judge(hostility.texts(1 << 25))
    assert not wrong, "\n".join(wrong)
