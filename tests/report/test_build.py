"""The report of a release: its parts, its figures, and what it must never show."""

import itertools
import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.attacks import Run
from shoal.attacks import names as attack_names
from shoal.errors import ParameterError
from shoal.job.reporting import report
from shoal.report.build import ReleaseReport
from shoal.report.distributions import _withheld
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
def house(rows: pa.Table, groups: Run) -> ReleaseReport:
    return reported(GROUPS, rows, groups, attacks=["linking"], population=rows)


@pytest.fixture(scope="module")
def house_z(rows: pa.Table, cells: Run) -> ReleaseReport:
    return reported(CELLS, rows, cells, attacks=["pseudonyms"])


def test_all_seven_parts_are_there_in_json_and_on_the_page(
    house: ReleaseReport, house_z: ReleaseReport
) -> None:
    for found in (house, house_z):
        figures = json.loads(found.json())
        assert [key for key in figures if key != "audience"] == PARTS
        heads = re.findall(r"<h2>(\d)\. ", found.html())
        assert heads == list("1234567")
        assert found.verdict == "kept"
        assert found.exit_code == 0


def test_a_page_is_small_and_fetches_nothing(house: ReleaseReport, house_z: ReleaseReport) -> None:
    for found in (house, house_z):
        html = found.html()
        assert len(html.encode()) < 2_000_000
        assert not re.search(r"https?:|//\w|<script|<link|<img|url\(|@import|\son\w+=", html)
        assert "<figure" in found._repr_html_()


def test_levels_of_headings_are_never_skipped(house: ReleaseReport) -> None:
    levels = [int(level) for level in re.findall(r"<h(\d)>", house.html())]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("audience", ["house", "public"])
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


def test_neither_seed_nor_paths_are_in_a_report(house: ReleaseReport) -> None:
    assert "987654321" not in house.html() + house.json()


def test_only_the_house_is_told_that_a_seed_was_set(house: ReleaseReport, groups: Run) -> None:
    public = report(GROUPS, groups.published, audience="public")
    assert "run.seed" in house.html()
    assert "run.seed" in house.json()
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


def test_risk_is_counted_in_people(house: ReleaseReport, groups: Run) -> None:
    figures = house.as_dict()["risk"]
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


def test_loss_by_attribute_agrees_with_the_trace(house: ReleaseReport, groups: Run) -> None:
    loss = house.as_dict()["utility"]["loss"]
    outcome = np.array(groups.trace["outcome"].to_pylist())
    traced = np.array(groups.trace["loss"].to_pylist(), dtype=float)
    assert loss["mean"] == pytest.approx(traced[outcome == "group"].mean())


def test_quarantine_is_told_by_reason(house: ReleaseReport) -> None:
    reasons = house.as_dict()["utility"]["quarantine"]
    assert sum(reasons.values()) == 2
    assert any("town" in reason for reason in reasons)
    assert any("age" in reason for reason in reasons)


def test_distributions_are_shares_of_all_rows(house: ReleaseReport) -> None:
    for each in house.as_dict()["utility"]["distributions"]:
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


def test_what_does_not_apply_under_z_is_said(house_z: ReleaseReport) -> None:
    figures = house_z.as_dict()
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
    house: ReleaseReport, house_z: ReleaseReport
) -> None:
    for found in (house, house_z):
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
