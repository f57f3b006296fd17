"""The private folder of a run that ends with a report: nothing but SIGKILL leaves it behind."""

from __future__ import annotations

import os
import signal

import pytest

from shoal.cli.private_folder import private_folder, remove_stale
from shoal.cli.signals import stopped_by_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["second", "hangup"])
def test_a_signal_that_ends_at_once_leaves_no_folder_behind(tmp_path, number):
    child = os.fork()
    if not child:
        signal.signal(number, signal.SIG_DFL)  # under nohup a hangup is ignored
        try:
            with private_folder(tmp_path) as folder, stopped_by_signals(lambda: None):
                (folder / "trace.parquet").touch()
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(number)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -number
    assert not list(tmp_path.iterdir())


def test_a_folder_in_use_is_not_stale(tmp_path):
    with private_folder(tmp_path) as folder:
        (folder / "trace.parquet").touch()
        assert remove_stale(tmp_path) == []
    assert not list(tmp_path.iterdir())
