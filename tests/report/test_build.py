"""The report of a release: its parts, its figures, and what it must never show."""

import itertools
import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.attacks import Run
from shoal.attacks import names as attack_names
from shoal.errors import ParameterError, ResourceError
from shoal.job.reporting import report
from shoal.report.build import ReleaseReport
from shoal.report.distributions import _withheld
from shoal.report.parts.risk import _distribution
from tests.report.world import CANARIES, CELLS, GROUPS, people, released, reported

PARTS = ["what", "promise", "risk", "attacks", "utility", "limits", "vocabulary"]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return people()


@pytest.fixture(scope="module")
def groups(rows: pa.Table) -> Run:
    return released(GROUPS, rows)


@pytest.fixture(scope="module")
def cells(rows: pa.Table) -> Run:
    return released(CELLS, rows)


@pytest.fixture(scope="module")
def internal(rows: pa.Table, groups: Run) -> ReleaseReport:
    return reported(GROUPS, rows, groups, attacks=["linking"], population=rows)


@pytest.fixture(scope="module")
def internal_z(rows: pa.Table, cells: Run) -> ReleaseReport:
    return reported(CELLS, rows, cells, attacks=["pseudonyms"])


def test_all_seven_parts_are_there_in_json_and_on_the_page(
    internal: ReleaseReport, internal_z: ReleaseReport
) -> None:
    for found in (internal, internal_z):
        figures = json.loads(found.json())
        assert [key for key in figures if key != "audience"] == PARTS
        heads = re.findall(r"<h2>(\d)\. ", found.html())
        assert heads == list("1234567")
        assert found.verdict == "kept"
        assert found.exit_code == 0


def test_a_page_is_small_and_fetches_nothing(
    internal: ReleaseReport, internal_z: ReleaseReport
) -> None:
    for found in (internal, internal_z):
        html = found.html()
        assert len(html.encode()) < 2_000_000
        assert not re.search(r"https?:|//\w|<script|<link|<img|url\(|@import|\son\w+=", html)
        assert "<figure" in found._repr_html_()


def test_levels_of_headings_are_never_skipped(internal: ReleaseReport) -> None:
    levels = [int(level) for level in re.findall(r"<h(\d)>", internal.html())]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("audience", ["internal", "public"])
@pytest.mark.parametrize("job", [GROUPS, CELLS], ids=["groups", "z"])
def test_values_that_only_the_original_has_never_appear(
    audience: Any, job: dict[str, Any], rows: pa.Table, groups: Run, cells: Run
) -> None:
    run = groups if job is GROUPS else cells
    # Runs made again take long, and publish nothing of the original either.
    fast = [name for name in attack_names() if name not in ("oracle", "restart")]
    found = reported(job, rows, run, audience, attacks=fast)
    text = found.html() + found.json() + repr(found) + found._repr_html_()
    for canary in CANARIES:
        assert canary not in text
    for name in set(rows["name"].to_pylist()) | set(rows["phone"].to_pylist()):
        assert not re.search(rf"\b{re.escape(name)}\b", text)


def test_neither_seed_nor_paths_are_in_a_report(internal: ReleaseReport) -> None:
    assert "987654321" not in internal.html() + internal.json()


def test_only_the_house_is_told_that_a_seed_was_set(internal: ReleaseReport, groups: Run) -> None:
    public = report(GROUPS, groups.published, audience="public")
    assert "run.seed" in internal.html()
    assert "run.seed" in internal.json()
    assert "run.seed" not in public.html() + public.json()


@pytest.mark.parametrize("job", [GROUPS, CELLS], ids=["groups", "z"])
def test_a_public_report_is_the_same_whatever_the_original_is(
    job: dict[str, Any], rows: pa.Table, groups: Run, cells: Run
) -> None:
    run = groups if job is GROUPS else cells
    other = people(80, seed=9)
    lies = released(job, other)
    first = report(job, run.published, audience="public")
    for trace in (run.trace, lies.trace, None):
        found = report(
            job, run.published, original=other, trace=trace, population=None, audience="public"
        )
        assert found.json() == first.json()
        assert found.html() == first.html()


def test_risk_is_counted_in_people(internal: ReleaseReport, groups: Run) -> None:
    figures = internal.as_dict()["risk"]
    trace = groups.trace
    group = np.array(trace["group"].to_pylist(), dtype=object)
    sizes = [
        len({trace["subject"][i].as_py() for i in np.flatnonzero(group == each)})
        for each in {each for each in group if each is not None}
    ]
    assert figures["counted_in"] == "people"
    assert figures["classes"]["group"]["highest"] == pytest.approx(1 / min(sizes))
    assert sum(figures["sizes"]["group"]["counts"]) == len(sizes)
    assert figures["classes"]["box"]["unique"] == 0
    before = figures["unique"]["before"]
    assert before["unique"] > before["people"] / 2
    journalist = figures["journalist"]
    assert journalist["highest"] <= figures["classes"]["box"]["highest"]
    assert journalist["average"] <= figures["classes"]["box"]["average"]


def test_rows_are_counted_where_nobody_knows_whose_they_are(groups: Run) -> None:
    found = report(GROUPS, groups.published, audience="public").as_dict()
    assert found["risk"]["counted_in"] == "rows"
    assert found["risk"]["unique"] == {"before": None, "after": None}
    assert found["utility"]["queries"] is None
    assert all(each["before"] is None for each in found["utility"]["distributions"])


def test_loss_by_attribute_agrees_with_the_trace(internal: ReleaseReport, groups: Run) -> None:
    loss = internal.as_dict()["utility"]["loss"]
    outcome = np.array(groups.trace["outcome"].to_pylist())
    traced = np.array(groups.trace["loss"].to_pylist(), dtype=float)
    assert loss["mean"] == pytest.approx(traced[outcome == "group"].mean())


@pytest.mark.parametrize("missing", ["maybe", "extended"])
def test_a_release_with_gaps_has_one_loss(missing: str) -> None:
    few = people(60)
    ages = [None if i % 7 == 0 else age for i, age in enumerate(few["age"].to_pylist())]
    few = few.set_column(1, "age", pa.array(ages, pa.string()))
    job = GROUPS | {"policy": {"k": 5, "missing": missing, "delay": {"rows": 40}}}
    run = released(job, few)
    loss = reported(job, few, run, attacks=[]).as_dict()["utility"]["loss"]
    outcome = np.array(run.trace["outcome"].to_pylist())
    traced = np.array(run.trace["loss"].to_pylist(), dtype=float)
    assert loss["mean"] == pytest.approx(traced[outcome == "group"].mean())


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ({"k": 100, "delay": {"rows": 20}}, "fewer than k = 100 people were held when the delay "),
        ({"k": 100, "delay": {"rows": 500}}, "fewer than k = 100 people were held at the end of "),
        ({"k": 2, "l": 5, "delay": {"rows": 20}}, "no group kept distinct l-diversity when the "),
    ],
    ids=["deadline", "end", "l"],
)
def test_suppression_is_told_by_reason(policy: dict[str, Any], reason: str) -> None:
    few = people(60)
    job = GROUPS | {"policy": policy}
    found = reported(job, few, released(job, few), attacks=[])
    suppression = found.as_dict()["utility"]["suppression"]
    reasons = suppression["reasons"]
    assert sum(reasons.values()) == suppression["rows"] > 0
    assert next(iter(reasons)).startswith(reason)
    assert "Suppressed rows by reason" in found.html()


def test_suppressed_rows_of_a_table_and_under_z_have_a_reason(internal_z: ReleaseReport) -> None:
    few = people(30)
    job = GROUPS | {"policy": {"k": 50, "window": "all"}, "algorithm": {"name": "mondrian"}}
    found = reported(job, few, released(job, few), attacks=[])
    reasons = found.as_dict()["utility"]["suppression"]["reasons"]
    assert list(reasons) == ["fewer than k = 50 people were held in the whole table"]
    suppression = internal_z.as_dict()["utility"]["suppression"]
    assert sum(suppression["reasons"].values()) == suppression["rows"]


def test_a_control_fills_its_columns_and_without_one_there_are_none(
    rows: pa.Table, groups: Run, internal: ReleaseReport
) -> None:
    assert ">control</th>" not in internal.html()
    assert "No control was made" in internal.html()
    found = reported(GROUPS, rows, groups, attacks="inference", control=0.3)
    assert ">control</th>" in found.html()
    for each in found.as_dict()["attacks"]["attacks"]:
        rate, control = each["success"]["rate"], each["control"]["rate"]
        assert each["risk"] == pytest.approx((rate - control) / (1 - control))
        # The people of the control are the ones who are attacked, in both runs.
        assert each["control"]["attempts"] == each["success"]["attempts"] < 30


@pytest.mark.parametrize("audience", ["internal", "public"])
def test_a_control_without_attacks_is_refused(audience: Any, groups: Run) -> None:
    with pytest.raises(ParameterError, match="control: is for the attacks, and none are run"):
        report(GROUPS, groups.published, audience=audience, control=0.2)


def test_the_day_is_told_and_when_rows_came_to_the_house_alone(rows: pa.Table) -> None:
    times = [f"2026-03-0{1 + i // 60}T10:00:{i % 60:02}" for i in range(rows.num_rows)]
    timed = rows.append_column("at", pa.array(times))
    job = GROUPS | {"schema": GROUPS["schema"] | {"time": "at"}}
    run = released(job, timed)
    internal = reported(job, timed, run, attacks=[])
    made = date.fromisoformat(internal.as_dict()["what"]["made"])
    # Midnight may have passed since.
    assert abs(datetime.now(UTC).date() - made) <= timedelta(days=1)
    assert internal.as_dict()["what"]["days"] == ["2026-03-01", "2026-03-03"]
    assert "2026-03-01 to 2026-03-03" in internal.html()
    public = reported(job, timed, run, "public")
    assert public.as_dict()["what"]["days"] is None
    assert "2026-03" not in public.html()


def test_the_public_is_not_told_how_large_domains_are(internal: ReleaseReport, groups: Run) -> None:
    public = report(GROUPS, groups.published, audience="public")
    assert "3 categories" in internal.html()
    for column in public.as_dict()["what"]["columns"]:
        assert not re.search(r"\d", column["domain"])


def test_what_is_broken_is_told_in_words(rows: pa.Table, groups: Run) -> None:
    strict = GROUPS | {"policy": {"k": 50, "delay": {"rows": 60}}}
    (line, *_) = reported(strict, rows, groups, attacks=[]).broken
    assert re.match(r"k-anonymity: broken; .* fewer than 50 ", line)


def test_a_page_that_can_not_be_written_is_an_error_of_shoal(
    internal: ReleaseReport, tmp_path: Path
) -> None:
    with pytest.raises(ResourceError, match="can't be written"):
        internal.write(tmp_path / "nowhere" / "report.html")


def test_sizes_are_never_one_bar_alone() -> None:
    found = _distribution(np.full(7, 20))
    assert sum(found["counts"]) == found["counts"][0] == 7
    assert len(found["counts"]) >= 8


def test_quarantine_is_told_by_reason(internal: ReleaseReport) -> None:
    reasons = internal.as_dict()["utility"]["quarantine"]
    assert sum(reasons.values()) == 2
    assert any("town" in reason for reason in reasons)
    assert any("age" in reason for reason in reasons)


def test_distributions_are_shares_of_all_rows(internal: ReleaseReport) -> None:
    for each in internal.as_dict()["utility"]["distributions"]:
        assert sum(each["after"]) == pytest.approx(1)
        assert sum(share or 0 for share in each["before"]) <= 1 + 1e-9


def test_few_people_of_the_original_are_left_out(rows: pa.Table, groups: Run) -> None:
    # One person alone beyond 115 would be a bar of their own.
    old = rows.slice(0, 1).to_pylist()[0] | {"age": "119", "name": "old"}
    more = pa.concat_tables([rows, pa.Table.from_pylist([old], schema=rows.schema)])
    run = released(GROUPS, more)
    ages = reported(GROUPS, more, run, attacks=[]).as_dict()["utility"]["distributions"][0]
    assert ages["attribute"] == "age"
    assert ages["before"][-1] is None
    # One alone could be computed from the others.
    assert sum(share is None for share in ages["before"]) > 1


def test_what_is_withheld_can_not_be_computed_from_the_rest() -> None:
    for n_people, withheld in (
        ([40, 0, 2, 30, 9], [False, False, True, False, True]),
        ([40, 0, 2, 1, 30], [False, False, True, True, True]),
        ([40, 0, 4, 3, 30], [False, False, True, True, False]),
        ([40, 0, 5, 30], [False, False, False, False]),
        ([0, 2], [False, True]),
    ):
        assert _withheld(np.array(n_people), 5).tolist() == withheld


def test_a_sensitive_value_is_named_if_enough_people_have_it() -> None:
    rows = people(50)
    # Nine rows of one person, who has an illness of their own.
    alone = rows.slice(0, 1).to_pylist()[0] | {"name": "one", "illness": "lupus"}
    more = pa.concat_tables([rows, pa.Table.from_pylist([alone] * 9, schema=rows.schema)])
    run = released(GROUPS, more)
    assert run.published["illness"].to_pylist().count("lupus") >= 5
    for trace in (run.trace, None):
        found = report(GROUPS, run.published, original=more, trace=trace, attacks=[])
        assert "flu" in found.json()
        assert "lupus" not in found.json() + found.html()


def test_what_does_not_apply_under_z_is_said(internal_z: ReleaseReport) -> None:
    figures = internal_z.as_dict()
    assert not figures["risk"]["applies"]
    assert "z-anonymity" in figures["risk"]["why"]
    exposure = figures["utility"]["cells"]["exposure"]
    assert set(exposure["levels"]) == {"article", "town"}
    assert figures["utility"]["rows"]["in"] == 153


def test_a_broken_promise_stands_out(rows: pa.Table, groups: Run) -> None:
    strict = GROUPS | {"policy": {"k": 50, "delay": {"rows": 60}}}
    found = reported(strict, rows, groups, attacks=[])
    assert (found.verdict, found.exit_code) == ("broken", 1)
    assert 'class="box warning"' in found.html()


def test_no_report_calls_data_anonymous_or_compliant(
    internal: ReleaseReport, internal_z: ReleaseReport
) -> None:
    for found in (internal, internal_z):
        text = re.sub(r"<[^>]+>", " ", found.html()).lower()
        assert not re.search(
            r"\banonymous\b(?! as)|compliant|complies", text.replace("2-anonymous", "")
        )


def test_a_population_lacks_columns(rows: pa.Table, groups: Run) -> None:
    with pytest.raises(ParameterError, match="population: lacks the columns weight"):
        reported(GROUPS, rows, groups, population=rows.drop_columns(["weight"]))


def test_an_empty_release_has_a_report(rows: pa.Table, groups: Run) -> None:
    nothing = groups.published.slice(0, 0)
    found = report(GROUPS, nothing, audience="public")
    assert found.as_dict()["what"]["rows"] == 0
    assert found.html()


def test_shoal_report_can_be_called(groups: Run) -> None:
    assert shoal.report(GROUPS, groups.published, audience="public").verdict == "unverifiable"


@pytest.mark.parametrize(
    "changes",
    [
        {"publish": {"numeric": "midpoint"}},
        {"publish": {"numeric": "bounds", "suppressed": "root"}},
        {"policy": {"k": 5, "missing": "maybe", "delay": {"rows": 40}}},
    ],
    ids=["midpoint", "bounds", "gaps"],
)
def test_every_kind_of_release_has_a_report(changes: dict[str, Any]) -> None:
    few = people(40)
    job = GROUPS | changes
    if "policy" in changes:
        ages = [None if i % 7 == 0 else age for i, age in enumerate(few["age"].to_pylist())]
        few = few.set_column(1, "age", pa.array(ages, pa.string()))
    run = released(job, few)
    for more in ({}, {"original": few}, {"original": few, "trace": run.trace}):
        found = report(job, run.published, attacks=[], **more)
        assert found.verdict == ("kept" if "trace" in more else "unverifiable")
        assert len(re.findall("<h2>", found.html())) == 7
