"""Minimality: the posterior over all inputs that lead to an output."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from benchmarks.minimality import Runs, Sizes, all_runs, learnt, measured, report

from shoal.algorithms import find
from shoal.spec.policy import Delay, KAnonymity, Policy


def runs(
    *,
    output: list[int],
    values: list[list[int]],
    sensitive: list[list[int]],
    seen_as: list[list[int]],
    n_alike: list[list[int]],
    n_group: list[list[int]],
    n_value: list[list[int]],
) -> Runs:
    given = (values, sensitive, output, seen_as, n_alike, n_group, n_value)
    return Runs(*(np.array(each, np.int64) for each in given))


def test_an_output_that_one_input_leads_to_tells_everything() -> None:
    # Two people in one group of values 0 and 1. Who has which value decides the output.
    told = runs(
        output=[0, 1],
        values=[[5, 5], [5, 5]],
        sensitive=[[0, 1], [1, 0]],
        seen_as=[[0, 1], [1, 0]],
        n_alike=[[1, 1], [1, 1]],
        n_group=[[2, 2], [2, 2]],
        n_value=[[1, 1], [1, 1]],
    )
    for about in ("row", "value"):
        found = learnt(told, 1 / 2, about=about, knows_all=True)
        assert found.success == found.worst == found.above == found.beyond == 1
        assert found.plain == 1 / 2
    # The same with one output for both: nothing is told.
    hidden = told._replace(output=np.zeros(2, np.int64))
    for about in ("row", "value"):
        found = learnt(hidden, 1 / 2, about=about, knows_all=True)
        assert found.success == found.worst == found.plain == 1 / 2
        assert found.above == found.beyond == 0


def test_more_knowledge_never_does_worse() -> None:
    policy = Policy(KAnonymity(2), delay=Delay(rows=2))
    made = all_runs(find("fads")(), policy, n_rows=4, n_values=2, n_sensitive=1, n_seeds=1)
    assert len(made.output) == 2**4
    own = learnt(made, 1 / 2, about="row", knows_all=False)
    everybody = learnt(made, 1 / 2, about="row", knows_all=True)
    assert own.success <= everybody.success + 1e-12
    # Under k alone rows of a group can't be told apart, whatever is known of their values.
    assert everybody.worst == pytest.approx(1 / 2)
    assert everybody.beyond == 0


def test_rows_that_leave_alone_are_above_the_bound() -> None:
    policy = Policy(KAnonymity(2), delay=Delay(rows=2))
    reusing = find("fads")(kept=10, joins="alone")
    made = all_runs(reusing, policy, n_rows=4, n_values=2, n_sensitive=1, n_seeds=1)
    assert learnt(made, 1 / 2, about="row", knows_all=True).worst == 1


def test_a_report_has_a_table_for_each_question() -> None:
    sizes = Sizes(k_values=2, delay=2, k_rows=3, k_seeds=1, l_rows=3, l_seeds=1)
    line = measured("fads", sizes)
    assert line["k"]["runs"] == 2**3
    assert line["k, l"]["runs"] == 4**3
    text = report({"sizes": asdict(sizes), "algorithms": [line]})
    assert text.count("| `fads`") == 6
