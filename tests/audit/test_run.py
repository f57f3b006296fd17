"""What the audit can tell from what it is given, in all forms that it may be given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from shoal.audit import audit
from shoal.audit.criteria import registry
from shoal.audit.run import _check_cells
from shoal.errors import JobError, ParameterError
from shoal.spec.policy import (
    Criterion,
    DistinctLDiversity,
    KAnonymity,
    Policy,
    Window,
    ZAnonymity,
)
from tests.audit.world import EACH_ROW, SCHEMA, World

K = "k-anonymity"
L = "distinct l-diversity of disease"


def test_a_right_run_keeps_every_promise(world: World) -> None:
    report = world.report()
    assert {v.name: v.verdict for v in report.verdicts} == dict.fromkeys(
        [
            "shape", "secrecy", K, L, "grouping", "order", "suppression", "arrival", "delay",
            "conservation", "cover", "loss",
        ],
        "kept",
    )  # fmt: skip
    assert (report.verdict, report.exit_code) == ("kept", 0)


# -- what can't be seen is never called kept -------------------------------------------------------


def verdicts(world: World, **given: bool) -> dict[str, str]:
    return {v.name: v.verdict for v in world.report(**given).verdicts}


def test_without_a_trace_only_the_file_itself_can_be_judged(world: World) -> None:
    found = verdicts(world, trace=False, original=False)
    assert {name for name, verdict in found.items() if verdict == "kept"} == {"shape", "secrecy"}
    assert "broken" not in found.values()
    assert world.report(trace=False).exit_code == 6


def test_without_a_trace_too_few_rows_are_too_few_subjects(world: World) -> None:
    world.published.append({**world.published[0], "city": "Oslo"})
    assert world.broken(trace=False) == {K, L}


def test_where_each_row_is_a_subject_boxes_are_enough(world: World) -> None:
    world.schema = EACH_ROW
    found = verdicts(world, trace=False)
    assert (found[K], found[L]) == ("kept", "kept")
    assert verdicts(world)[K] == "kept"


def test_where_each_row_is_a_subject_the_report_says_so(world: World) -> None:
    assert "counted by rows" not in str(world.report())
    world.schema = EACH_ROW
    report = world.report()
    assert "subjects are counted by rows" in str(report)
    assert "rows, each counted as a subject" in report[K].detail
    assert "different subjects" not in report[K].detail


def test_where_each_row_is_a_subject_the_trace_need_not_name_any(world: World) -> None:
    world.schema = EACH_ROW
    for line in world.trace:
        line["subject"] = None
    assert set(verdicts(world).values()) == {"kept"}


def test_without_the_original_the_cover_cannot_be_seen(world: World) -> None:
    report = world.report(original=False)
    unseen = [v.name for v in report.verdicts if v.verdict != "kept"]
    assert (unseen, report.exit_code) == (["arrival", "cover"], 6)


def test_a_trace_that_does_not_fit_proves_nothing(world: World) -> None:
    world.published.append(dict(world.published[0]))
    found = verdicts(world)
    assert {name for name, verdict in found.items() if verdict == "unverifiable"} == {
        K,
        L,
        "grouping",
        "order",
        "cover",
        "loss",
    }


def test_a_delay_in_seconds_needs_times(world: World) -> None:
    for line in world.trace:
        line["arrived_s"] = line["published_s"] = None
    assert verdicts(world)["delay"] == "unverifiable"


def test_no_delay_was_promised(world: World) -> None:
    world.delay = None
    assert "delay" not in verdicts(world)


@pytest.mark.parametrize(("n", "verdict"), [(1, "kept"), (4, "kept"), (5, "broken")])
def test_the_last_bits_of_a_large_time_are_not_a_delay(world: World, n: int, verdict: str) -> None:
    """Each of the two times may be off by two of its last places."""
    for line in world.trace:
        for name in ("arrived_s", "published_s"):
            if line[name] is not None:
                line[name] += 1_700_000_000.123
    line = world.line(3)
    line["published_s"] = line["arrived_s"] + 40.0 + n * float(np.spacing(line["arrived_s"]))
    assert verdicts(world)["delay"] == verdict


def test_a_criterion_without_a_checker_is_unverifiable(world: World) -> None:
    @dataclass(frozen=True, slots=True)
    class Stricter(DistinctLDiversity):
        name: ClassVar[str] = "something stricter"

    world.criteria = [KAnonymity(2), Stricter(2)]
    assert verdicts(world)["something stricter"] == "unverifiable"


def test_an_empty_output_breaks_nothing(world: World) -> None:
    world.published = []
    world.trace = [line for line in world.trace if line["seq"] is None]
    for row, line in enumerate(world.trace):
        line["row"] = row
    world.trace[0]["arrived"], world.trace[2]["arrived"] = 0, 1
    world.trace[0]["published"], world.delay = 1, None
    world.original = world.original[6:9]
    assert set(verdicts(world).values()) == {"kept"}


# -- suppressed rows as roots ----------------------------------------------------------------------

ROOT = {"age": "[0, 99]", "city": "Any", "disease": None, "visits": None}


@pytest.fixture
def rooted(world: World) -> World:
    """The same run, with suppressed rows published as roots."""
    world.options["suppressed"] = "root"
    world.line(6)["seq"] = len(world.published)
    world.published.append(dict(ROOT))
    return world


def test_root_rows_are_no_group(rooted: World) -> None:
    assert set(verdicts(rooted).values()) == {"kept"}
    rooted.schema = EACH_ROW
    assert verdicts(rooted, trace=False)[K] == "kept"


@pytest.mark.parametrize(
    "change", [{"disease": "gout"}, {"visits": 7}, {"city": "South"}, {"age": "[0, 95]"}]
)
def test_a_root_row_that_says_something_is_found(rooted: World, change: dict[str, object]) -> None:
    rooted.published[-1].update(change)
    assert rooted.broken() == {"suppression"}
    # Without a trace it is a row like any other, alone in its box.
    assert rooted.broken(trace=False) == {K, L}


def test_a_suppressed_row_that_should_be_shown_is_missed(rooted: World) -> None:
    rooted.line(6)["seq"] = None
    rooted.published.pop()
    assert rooted.broken() == {"suppression"}


def test_a_suppressed_row_beyond_the_end_of_the_output_says_nothing(rooted: World) -> None:
    rooted.published.pop()
    assert rooted.broken() == {"conservation"}


def test_a_group_at_the_root_is_a_group_all_the_same(world: World) -> None:
    world.append({**ROOT, "disease": "flu", "visits": 1}, group=3)
    assert world.broken() == {K, L}


# -- forms of input --------------------------------------------------------------------------------


def test_a_text_file_is_judged_like_a_typed_one(world: World) -> None:
    for table in (world.published, world.original):
        for row in table:
            row["visits"] = str(row["visits"])
    assert set(verdicts(world).values()) == {"kept"}
    for row in world.original:
        row["visits"] = int(row["visits"])
    assert set(verdicts(world).values()) == {"kept"}


def test_dictionaries_and_chunks_are_judged_alike(world: World) -> None:
    table = pa.Table.from_pylist(world.published)
    halves = [table.slice(0, 3), table.slice(3)]
    encoded = pa.concat_tables(
        pa.table(
            {
                n: half[n].dictionary_encode() if n != "visits" else half[n]
                for n in half.column_names
            }
        )
        for half in halves
    )
    policy = Policy(*world.criteria, delay=world.delay)
    trace = pa.Table.from_pylist(world.trace)
    given = {"trace": trace, "original": pa.Table.from_pylist(world.original)}
    assert audit(SCHEMA, policy, encoded, **given) == audit(SCHEMA, policy, table, **given)


def test_rows_that_could_not_be_read_are_known_by_their_position(world: World) -> None:
    positions = [row for row in range(len(world.original)) if row != 7]
    world.original = [world.original[row] for row in positions]
    world.options["original_rows"] = np.array(positions)
    assert set(verdicts(world).values()) == {"kept"}
    world.original.reverse()
    world.options["original_rows"] = np.array(positions[::-1])
    assert set(verdicts(world).values()) == {"kept"}
    world.original[4]["age"] = "99"
    assert world.broken() == {"cover"}


def test_a_row_that_the_input_does_not_have_is_found(world: World) -> None:
    positions = [row for row in range(len(world.original)) if row not in (4, 7)]
    world.original = [world.original[row] for row in positions]
    world.options["original_rows"] = np.array(positions)
    assert world.broken() == {"conservation", "cover"}


def test_a_row_of_the_input_without_a_line_is_found(world: World) -> None:
    world.options["original_rows"] = np.arange(len(world.original))
    assert set(verdicts(world).values()) == {"kept"}
    world.original.append(dict(world.original[0]))
    world.options["original_rows"] = np.arange(len(world.original))
    assert world.broken() == {"conservation"}


def test_columns_that_are_there_twice_are_found(world: World) -> None:
    table = pa.Table.from_pylist(world.published)
    table = table.append_column("city", table["city"])
    report = audit(SCHEMA, Policy(KAnonymity(2)), table)
    assert [v.name for v in report.verdicts if v.verdict == "broken"] == ["shape"]


def test_without_quasi_columns_nothing_is_said_of_boxes(world: World) -> None:
    for row in world.published:
        del row["age"], row["city"]
    report = world.report()
    assert report["shape"].verdict == "broken"
    assert report[K].verdict == "unverifiable"
    assert "n_boxes" not in report[K].figures
    assert report[K].figures["n_groups"] == 3


def test_the_order_of_the_trace_does_not_matter(world: World) -> None:
    world.trace.reverse()
    assert set(verdicts(world).values()) == {"kept"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("numeric", "exact"), ("suppressed", "shown"), ("original_rows", [1]),
        ("order", "sorted"), ("loss", "entropy"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(world: World, option: str, value: object) -> None:
    world.options[option] = value
    with pytest.raises(ParameterError, match=option):
        world.report()


def test_tables_that_lack_columns_are_refused(world: World) -> None:
    for line in world.trace:
        del line["seq"]
    with pytest.raises(ParameterError, match="trace: lacks the columns seq"):
        world.report()
    for row in world.original:
        del row["person"]
    with pytest.raises(ParameterError, match="original: lacks the columns person"):
        world.report(trace=False)


def test_a_trace_of_cells_is_refused(world: World) -> None:
    world.trace[0]["attribute"] = "age"
    with pytest.raises(ParameterError, match="each cell"):
        world.report()


def test_a_policy_for_other_columns_is_refused(world: World) -> None:
    world.criteria = [DistinctLDiversity(2, attribute="salary")]
    with pytest.raises(JobError, match="salary"):
        world.report()


# -- numbers published in other forms --------------------------------------------------------------


def _bounds(row: dict[str, object]) -> tuple[int, int]:
    lo, hi = str(row["age"]).strip("[]").split(", ")
    return int(lo), int(hi)


def as_bounds(w: World) -> None:
    w.options["numeric"] = "bounds"
    for i, row in enumerate(w.published):
        lo, hi = _bounds(row)
        rest = {name: value for name, value in row.items() if name != "age"}
        w.published[i] = {"age_min": lo, "age_max": hi, **rest}


def as_midpoints(w: World) -> None:
    w.options["numeric"] = "midpoint"
    for row in w.published:
        row["age"] = sum(_bounds(row)) / 2


@pytest.mark.parametrize("publish", [as_bounds, as_midpoints])
@pytest.mark.parametrize("wrong_age", ["61", "nonsense"])
def test_other_forms_are_judged_alike(
    world: World, publish: Callable[[World], None], wrong_age: str
) -> None:
    world.append({"age": "[0, 10]"}, group=3, subject="kim")
    world.append({"age": "[0, 10]", "disease": "flu"}, group=3, subject="lou")
    world.trace[-2].update(published=11, published_s=110.0)
    for row in world.original[-2:]:
        row["age"] = "7"
    publish(world)
    assert set(verdicts(world).values()) == {"kept"}
    world.original[-1]["age"] = wrong_age
    assert world.broken() == {"cover"}


@dataclass(frozen=True)
class Silent(Criterion):
    """A criterion whose check says nothing."""

    name: ClassVar[str] = "silence"


def test_a_check_without_a_result_keeps_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.criteria.append(Silent())
    assert world.report()["silence"].verdict == "unverifiable"
    monkeypatch.setitem(registry._CHECKERS, Silent, lambda evidence, criterion: [])
    report = world.report()
    assert report["silence"].verdict == report.verdict == "unverifiable"


def test_reuses_that_left_with_few_people_are_counted_and_said_to_be_found(world: World) -> None:
    """Row 5 joins a group alone, under k = 2; with another row at its moment it doesn't."""
    found = world.report()["grouping"]
    assert (found.verdict, found.figures["n_reuses_with_few"]) == ("kept", 1)
    assert "reads off which published row is theirs" in found.detail
    (reused,) = [line for line in world.trace if line["outcome"] == "reuse"]
    for line in world.trace:
        if line["row"] in (9, 10):
            line |= {name: reused[name] for name in ("published", "published_s")}
    found = world.report()["grouping"]
    assert found.figures["n_reuses_with_few"] == 0
    assert "reads off" not in found.detail


def n_with_few(world: World) -> object:
    return world.report()["grouping"].figures["n_reuses_with_few"]


@pytest.mark.parametrize(("k", "n"), [(3, 0), (4, 1)])
@pytest.mark.parametrize("seconds", [70.0, None])
def test_k_people_at_a_moment_arent_few(
    world: World, k: int, n: int, seconds: float | None
) -> None:
    """Rows 9 and 10 leave when row 5 does, so that these are three people."""
    world.criteria = [KAnonymity(k)]
    for row in (5, 9, 10):
        world.line(row).update(published=7, published_s=seconds)
    assert n_with_few(world) == n


def test_a_reuse_is_counted_in_every_place(world: World) -> None:
    first, reuse = world.line(1), world.line(5)
    world.published[0], world.published[5] = world.published[5], world.published[0]
    first["seq"], reuse["seq"] = 5, 0
    assert n_with_few(world) == 1


def test_suppressed_rows_are_no_people_to_leave_with(rooted: World) -> None:
    rooted.line(6).update(published=7, published_s=70.0)
    assert n_with_few(rooted) == 1


def test_where_nothing_is_in_the_output_no_reuse_is_with_few(world: World) -> None:
    for line in world.trace:
        line["seq"] = None
    assert n_with_few(world) == 0


@pytest.mark.parametrize(
    "options", [{"pseudonym": True}, {"time": 5.0}, {"rotate": 5.0}, {"count": "all of them"}]
)
def test_what_is_of_z_anonymity_alone_is_refused_elsewhere(
    world: World, options: dict[str, object]
) -> None:
    world.options |= options
    with pytest.raises((JobError, ParameterError)):
        world.report()


@pytest.mark.parametrize(
    "wrong",
    [
        {"time": -1.0}, {"time": np.inf}, {"time": np.nan}, {"pseudonym": True, "rotate": 0.0},
        {"pseudonym": True, "rotate": -1.0}, {"pseudonym": True, "rotate": np.inf},
        {"rotate": 60.0}, {"count": "all of them"},
    ],
)  # fmt: skip
def test_what_z_anonymity_cant_mean_is_refused(wrong: dict[str, object]) -> None:
    policy = Policy(ZAnonymity(2), window=Window(seconds=60))
    right = {"count": "residual", "pseudonym": False, "rotate": None, "time": None}
    with pytest.raises((JobError, ParameterError)):
        _check_cells(policy, **right | wrong)  # type: ignore[arg-type]
    for rotate in (60.0, 0.5):
        _check_cells(policy, "residual", pseudonym=True, rotate=rotate, time=0.0)
