"""The bar of a comparison counts the runs that can be made."""

from __future__ import annotations

from rich.progress import Progress

from shoal import Delay, KAnonymity, Policy
from shoal.algorithms import Castle, Mondrian
from shoal.cli.compare.progress import GridProgress
from shoal.compare.cells import cells_of
from shoal.compare.pool import Outcome, refusal_of


def test_runs_that_cant_be_made_dont_count():
    policies = [Policy(KAnonymity(k), delay=Delay(rows=30)) for k in (2, 4)]
    cells = cells_of(policies, [Castle(), Mondrian()])
    progress = GridProgress(cells, 1, quiet=False)
    progress._bar = bar = Progress()
    progress._task = bar.add_task("", total=len(cells))
    refused = [(place, found) for place, cell in enumerate(cells) if (found := refusal_of(cell))]
    assert [place for place, _ in refused] == [2, 3]
    for place, outcome in refused:
        progress.ended(place, outcome)
    progress.ended(0, Outcome("failed"))
    (task,) = bar.tasks
    assert (task.completed, task.total) == (1, 2)
