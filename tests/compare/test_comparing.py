"""``shoal.compare`` on made-up people, in plain runs: measured, judged, kept and repeated."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import stat
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import shoal
from shoal import Delay, Hierarchy, KAnonymity, Policy, Quasi, Range, Schema, Sensitive
from shoal.algorithms import Castle
from shoal.compare import cache, comparing, pool
from shoal.compare.cells import Cell, cells_of
from shoal.compare.comparing import compare_cells
from shoal.compare.measure import Figures, Rows, measure
from shoal.compare.pool import Outcome, run_cells
from shoal.compare.repeats import combined, mean_of
from shoal.compare.sampling import about_tables, drawn
from shoal.engine import sources
from shoal.errors import ParameterError
from shoal.metrics import loss_by_attribute
from tests.compare.test_choice import figures
from tests.world import people, with_gaps

TOWNS = Hierarchy.flat(["berlin", "dresden", "bonn", "koeln"])
SCHEMA = Schema(
    subject="person",
    quasi=[Quasi("age", Range(0, 120, step=1)), Quasi("town", TOWNS, weight=3.0)],
    sensitive=[Sensitive("illness")],
)
POLICIES = [Policy(KAnonymity(k), delay=Delay(rows=30)) for k in (2, 4)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_CACHE_DIR", str(tmp_path))
    return tmp_path / "shoal" / "compare"


def rows(n: int = 60) -> Rows:
    return Rows(SCHEMA, people(n).select(SCHEMA.columns))


def test_every_pair_is_measured_and_an_algorithm_that_cant_is_listed_with_its_reason():
    found = shoal.compare(people(60), SCHEMA, POLICIES, ["castle", "mondrian"])
    assert [(run.cell.label, run.cell.policy.k) for run in found.runs] == [
        ("castle", 2), ("castle", 4), ("mondrian", 2), ("mondrian", 4),
    ]  # fmt: skip
    assert [run.outcome.status for run in found.runs] == ["done"] * 2 + ["unsupported"] * 2
    assert "publishes a whole table at once" in found.runs[2].outcome.reason
    for run, k in zip(found.runs[:2], (2, 4), strict=True):
        got = run.figures
        assert got is not None
        assert got.audit == "kept"
        assert got.n_published + got.n_suppressed == got.n_rows == 60
        assert got.smallest_group is not None
        assert got.smallest_group >= k
        assert got.risk is not None
        assert 0 < got.risk <= 1 / k
        assert got.attack_bound == 1 / k
        assert got.attack_verdict == "within"
        assert got.delay_most is not None
        assert got.delay_most <= 30
        assert got.waits[-1] == got.n_published
        assert got.query_error is not None
    assert found.recommended is not None
    assert found.recommended.place == 1


def test_the_losses_of_attributes_make_up_the_loss_of_rows():
    done = shoal.anonymize(people(60), SCHEMA, POLICIES[0], "castle", seed=0)
    losses = loss_by_attribute(SCHEMA, done.frame)
    age, town = losses["age"], losses["town"]
    assert age is not None
    assert town is not None
    loss = done.summary.loss.published
    assert loss is not None
    assert math.isclose((age + 3 * town) / 4, loss)
    empty = done.frame.slice(0, 0)
    assert loss_by_attribute(SCHEMA, empty) == {"age": None, "town": None}


def test_a_missing_value_loses_nothing_by_its_attribute():
    schema = Schema(None, [Quasi("age", Range(0, 100)), Quasi("town", TOWNS)])
    published = pa.table({"age": ["[20, 30]", None], "town": ["*", "bonn"]})
    assert loss_by_attribute(schema, published) == {"age": 0.1, "town": 0.5}


def test_seeds_are_run_one_by_one_and_found_again():
    found = shoal.compare(people(60), SCHEMA, POLICIES[0], "castle", seeds=3)
    (run,) = found.runs
    alone = [measure(rows(), Cell(Castle(), POLICIES[0], repeat=i)) for i in range(3)]
    got = run.figures
    assert got is not None
    assert got.n_seeds == 3
    losses = [each.loss for each in alone]
    assert got.loss == pytest.approx(sum(losses) / 3)
    assert got.spread["loss"] == pytest.approx(statistics.stdev(losses))
    assert got.audit == "kept"
    assert got.smallest_group == min(each.smallest_group for each in alone)
    assert got.waits[-1] == got.n_published
    again = shoal.compare(people(60), SCHEMA, POLICIES[0], "castle", seeds=3)
    assert again.runs[0].outcome.cached
    assert again.runs[0].figures == got
    for wrong in (0, 1.5, True):
        with pytest.raises(ParameterError, match="seeds: must be a whole number"):
            shoal.compare(people(60), SCHEMA, POLICIES[0], "castle", seeds=wrong)


def test_the_worst_seed_is_told():
    good = figures(0.3, 0.1)
    bad = dataclasses.replace(good, audit="broken", attack_verdict="exceeded", audit_detail="k: no")
    both = mean_of([good, bad, good])
    assert (both.audit, both.attack_verdict, both.audit_detail) == ("broken", "exceeded", "k: no")
    failed = Outcome("failed", reason="why")
    assert combined([Outcome("done", good), failed]) == failed
    half = combined([Outcome("done", good), Outcome("not run")]).figures
    assert half is not None
    assert half.n_seeds == 1


def test_a_sample_of_a_table_has_all_rows_of_the_people_drawn():
    table = pa.table({"person": [f"p{i % 40}" for i in range(120)], "age": list(range(120))})
    schema = Schema("person", [Quasi("age", Range(0, 120))])
    chosen = drawn(table, schema, 31, seed=5)
    assert chosen.num_rows == 30
    counts = Counter(chosen["person"].to_pylist())
    assert set(counts.values()) == {3}
    assert chosen["age"].to_pylist() == sorted(chosen["age"].to_pylist())
    # They aren't the first people, and the same seed draws the same.
    assert set(counts) != {f"p{i}" for i in range(10)}
    assert drawn(table, schema, 31, seed=5) == chosen
    assert drawn(table, schema, 500, seed=5) is table
    each_row = drawn(table, Schema(None, schema.quasi), 31, seed=5)
    assert each_row.num_rows == 31


def test_only_a_grid_of_tables_is_sampled_at_random():
    whole = Policy(KAnonymity(2), window="all")
    assert about_tables(cells_of([whole], [Castle()]))
    assert not about_tables(cells_of([whole, POLICIES[0]], [Castle()]))


def test_rows_that_cant_be_used_are_left_out_and_counted():
    got = measure(Rows(SCHEMA, with_gaps(people(60))), Cell(Castle(), POLICIES[0]))
    assert got.n_quarantined > 0
    assert got.n_published + got.n_suppressed + got.n_quarantined == 60
    assert got.audit == "kept"


def test_a_promise_that_nobody_can_keep_gives_figures_and_no_recommendation():
    found = shoal.compare(
        people(30), SCHEMA, Policy(KAnonymity(500), delay=Delay(rows=60)), "castle"
    )
    (run,) = found.runs
    assert run.figures is not None
    assert (run.figures.n_published, run.figures.suppression) == (0, 1.0)
    assert run.figures.loss_with_suppressed == 1.0
    assert run.figures.risk is None
    assert found.recommended is None
    assert found.front == frozenset()
    assert "recommended: none" in repr(found)


def test_z_anonymity_is_measured_as_far_as_it_can_be():
    schema = Schema("person", [Quasi("town", TOWNS)])
    policy = Policy(shoal.ZAnonymity(3), window=shoal.Window(rows=50))
    found = shoal.compare(people(60), schema, policy, ["z-anonymity", "castle"])
    first, second = found.runs
    assert first.figures is not None
    assert first.figures.audit == "kept"
    assert (first.figures.query_error, first.figures.risk) == (None, None)
    assert second.outcome.status == "unsupported"
    assert "z-anonymity" in repr(found)


# -- the cache ------------------------------------------------------------------------------------


def test_what_was_measured_isnt_run_again_so_a_grid_can_grow(folder):
    first = shoal.compare(people(60), SCHEMA, POLICIES[:1], "castle")
    again = shoal.compare(people(60), SCHEMA, POLICIES, "castle")
    assert [run.outcome.cached for run in again.runs] == [True, False]
    assert again.runs[0].figures == first.runs[0].figures
    entries = list(folder.iterdir())
    assert len(entries) == 2
    for entry in entries:
        assert stat.S_IMODE(entry.stat().st_mode) == 0o600
        assert "person-" not in entry.read_text()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_other_rows_knobs_seeds_and_policies_are_measured_on_their_own(folder):
    base, cell = rows(), Cell(Castle(), POLICIES[0])
    kept = cache.ResultCache(base, folder)
    kept.put(cell, figures(0.3, 0.2))
    assert kept.get(cell) is not None
    other = people(60, seed=2).select(SCHEMA.columns)
    renamed = Schema(
        "person", [Quasi("age", Range(0, 121, step=1)), *SCHEMA.quasi[1:]], SCHEMA.sensitive
    )
    for different in (
        Rows(SCHEMA, other),
        dataclasses.replace(base, seed=1),
        Rows(renamed, base.table),
    ):
        assert cache.ResultCache(different, folder).get(cell) is None
    for changed in (Cell(Castle(clusters=20), POLICIES[0]), Cell(Castle(), POLICIES[1])):
        assert kept.get(changed) is None
    halves = pa.concat_tables([base.table.slice(0, 25), base.table.slice(25)])
    assert cache.ResultCache(Rows(SCHEMA, halves), folder).get(cell) is not None


def test_other_code_is_measured_again(folder, monkeypatch):
    base, cell = rows(), Cell(Castle(), POLICIES[0])
    kept = cache.ResultCache(base, folder)
    kept.put(cell, figures(0.3, 0.2))
    monkeypatch.setattr(cache, "digest_of", lambda files: "other code")
    assert kept.get(cell) is None


@pytest.mark.parametrize("file", ["attacks/linking.py", "attacks/shares.py"])
def test_an_edit_of_the_attack_is_measured_again(folder, monkeypatch, file):
    base, cell = rows(), Cell(Castle(), POLICIES[0])
    kept = cache.ResultCache(base, folder)
    kept.put(cell, figures(0.3, 0.2))
    read = sources._source_of

    def edited(path: Path) -> bytes:
        return read(path) + (b"# edited" if path.as_posix().endswith(f"shoal/{file}") else b"")

    monkeypatch.setattr(sources, "_source_of", edited)
    assert kept.get(cell) is None


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"n_rows": 1}'])
def test_a_damaged_entry_is_measured_again(folder, text):
    kept, cell = cache.ResultCache(rows(), folder), Cell(Castle(), POLICIES[0])
    kept.put(cell, figures(0.3, 0.2))
    (entry,) = folder.iterdir()
    entry.write_text(text)
    assert kept.get(cell) is None


def test_a_folder_that_others_can_write_to_isnt_used(folder):
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    shoal.compare(people(60), SCHEMA, POLICIES[:1], "castle")
    assert list(folder.iterdir()) == []


def test_without_a_cache_nothing_is_written(folder):
    shoal.compare(people(60), SCHEMA, POLICIES[:1], "castle", cache=False)
    assert not folder.exists()


def test_the_oldest_entries_are_removed(folder, monkeypatch):
    monkeypatch.setattr(cache, "MOST_ENTRIES", 2)
    base = rows()
    kept = cache.ResultCache(base, folder)
    for clusters in (10, 20, 30):
        kept.put(Cell(Castle(clusters=clusters), POLICIES[0]), figures(0.3, 0.2))
    assert len(list(folder.iterdir())) == 2
    assert kept.get(Cell(Castle(clusters=30), POLICIES[0])) == figures(0.3, 0.2)


# -- failures, processes, Ctrl-C ------------------------------------------------------------------


class Seen:
    """A watch that keeps what it is told; it may raise when a cell begins."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.outcomes: dict[int, Outcome] = {}
        self._stop_at = stop_at

    def begun(self, place: int) -> None:
        if place == self._stop_at:
            raise KeyboardInterrupt

    def ended(self, place: int, outcome: Outcome) -> None:
        self.outcomes[place] = outcome


def test_a_failing_cell_doesnt_end_the_grid_and_its_message_isnt_shown(monkeypatch):
    def fail(given: Rows, cell: Cell) -> Figures:
        if cell.policy.k == 2:
            raise ValueError("CANARY")
        return measure(given, cell)

    monkeypatch.setattr(pool, "measure", fail)
    seen = Seen()
    cells = cells_of(POLICIES, [Castle()])
    run_cells(rows(), list(enumerate(cells)), seen)
    assert [seen.outcomes[place].status for place in (0, 1)] == ["failed", "done"]
    assert seen.outcomes[0].reason == "ValueError: a bug in Shoal, please report it"


def test_several_processes_measure_the_same():
    base, cells = rows(), list(enumerate(cells_of(POLICIES, [Castle()])))
    alone, beside = Seen(), Seen()
    run_cells(base, cells, alone)
    run_cells(base, cells, beside, jobs=2)
    for place in (0, 1):
        one, other = alone.outcomes[place].figures, beside.outcomes[place].figures
        assert one is not None
        assert other is not None
        assert dataclasses.replace(one, rows_per_s=0.0) == dataclasses.replace(
            other, rows_per_s=0.0
        )


def test_ctrl_c_keeps_what_is_done():
    cells = cells_of(POLICIES, [Castle()])
    found = compare_cells(rows(), cells, watch=Seen(stop_at=1))
    assert found.interrupted
    assert [run.outcome.status for run in found.runs] == ["done", "not run"]
    assert "1 of 2 runs on 60 rows, interrupted" in repr(found)
    assert found.recommended is None
    assert "recommended: none, since not all runs were made" in repr(found)
    again = compare_cells(rows(), cells)
    assert [run.outcome.cached for run in again.runs] == [True, False]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_ctrl_c_waits_for_processes_that_start_and_they_never_see_it():
    # Spark, if it runs in this process, has a handler of its own.
    before = signal.getsignal(signal.SIGINT)
    shown = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    seen = []
    with pytest.raises(KeyboardInterrupt), pool._ctrl_c_held():
        signal.raise_signal(signal.SIGINT)
        seen.append(subprocess.check_output([sys.executable, "-c", shown], text=True))
    assert seen == ["True\n"]
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


# -- what is given, and what comes back -----------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": []}, "policies: are none"),
        ({"algorithms": []}, "algorithms: are none"),
        ({"algorithms": "castel"}, "Did you mean 'castle'"),
        ({"algorithms": [Castle]}, "Call it, for example Tide"),
        ({"policies": [SCHEMA]}, "policy: must be a Policy"),
        ({"sample": 0}, "sample: must be a whole number"),
        ({"jobs": 0}, "jobs: must be a whole number"),
        ({"frame": people(5).slice(0, 0)}, "frame: has no rows"),
    ],
)
def test_wrong_parameters_are_refused_at_once(change, message):
    given = {"frame": people(5), "schema": SCHEMA, "policies": POLICIES, "algorithms": "castle"}
    with pytest.raises(ParameterError, match=message):
        comparing.compare(**given | change)


def test_a_sample_is_the_first_rows():
    found = shoal.compare(people(60), SCHEMA, POLICIES[:1], "castle", sample=20)
    assert found.n_rows == 20
    again = shoal.compare(people(60).slice(0, 20), SCHEMA, POLICIES[:1], "castle")
    assert again.runs[0].outcome.cached


@pytest.mark.parametrize("kind", ["dicts", "pandas", "polars", "arrow"])
def test_frame_is_of_the_kind_that_was_compared(kind):
    table = people(60)
    given = {
        "dicts": table.to_pylist,
        "arrow": lambda: table,
        "pandas": table.to_pandas,
        "polars": lambda: pytest.importorskip("polars").from_arrow(table),
    }[kind]()
    frame = shoal.compare(given, SCHEMA, POLICIES, "castle").frame()
    assert type(frame) is type(given)
    assert [
        int(k)
        for k in ([row["k"] for row in frame] if kind == "dicts" else list(map(str, frame["k"])))
    ] == [2, 4]


def test_it_draws_itself_in_a_notebook_and_has_no_value_of_a_person():
    found = shoal.compare(people(60), SCHEMA, POLICIES, ["castle", "mondrian"])
    html = found._repr_html_()
    for text in (repr(found), html, json.dumps(found.as_dict())):
        assert "person-" not in text
        assert "scurvy" not in text
    assert html.count("<svg") == 1
    assert "Utility against risk" in html
    assert "publishes a whole table at once" in html
    assert "<script" not in html
