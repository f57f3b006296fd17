"""Forged outputs and traces of a real run are found by the command, in every format."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.audit.forged_run import FORMATS, Auditor, K, Run, honest_run


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    folder = tmp_path_factory.mktemp("honest")
    with pytest.MonkeyPatch.context() as monkeypatch:
        return folder, honest_run(folder, monkeypatch)


@pytest.fixture(params=FORMATS)
def auditor(
    honest: tuple[Path, Run],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Auditor:
    return Auditor(honest[0], request.param, monkeypatch, capfd)


@pytest.fixture
def run(honest: tuple[Path, Run]) -> Run:
    return honest[1].copy()


# -- forgeries -------------------------------------------------------------------------------------


def sort_groups(run: Run, key: Callable[[dict], object], *, backwards: bool = False) -> None:
    lines = run.in_order()
    for members in run.groups().values():
        first = members[0]["seq"]
        lines[first : first + len(members)] = sorted(members, key=key, reverse=backwards)
    run.reorder(lines)


def sorted_by_subject(run: Run) -> None:
    sort_groups(run, lambda line: line["subject"])


def sorted_by_the_number_of_the_subject(run: Run) -> None:
    """As text these have another order: 9 comes after 10."""
    for line in run.trace:
        number = int(line["subject"].removeprefix("person-")) + 3
        line["subject"] = run.original[line["row"]]["person"] = str(number)
    sort_groups(run, lambda line: int(line["subject"]))


def sorted_by_arrival(run: Run) -> None:
    sort_groups(run, lambda line: line["arrived"])


def sorted_by_arrival_backwards(run: Run) -> None:
    sort_groups(run, lambda line: line["arrived"], backwards=True)


def sorted_by_the_hidden_age(run: Run) -> None:
    sort_groups(run, lambda line: run.original[line["row"]]["age"])


def groups_of_two_instants_interleaved(run: Run) -> None:
    lines, groups = run.in_order(), list(run.groups().values())
    one, other = next(
        (a, b)
        for a, b in pairwise(groups)
        if a[0]["published"] < b[0]["published"] and a[-1]["seq"] + 1 == b[0]["seq"]
    )
    first = one[0]["seq"]
    lines[first : first + len(one) + len(other)] = [*other[:2], *one, *other[2:]]
    run.reorder(lines)


def groups_of_one_instant_interleaved(run: Run) -> None:
    """Said to have left together, as two groups: the job lets groups leave one after the other."""
    lines, groups = run.in_order(), list(run.groups().values())
    one, other = next(
        (a, b)
        for a, b in pairwise(groups)
        if b[0]["published"] <= min(line["arrived"] for line in a) + 60
        and a[-1]["seq"] + 1 == b[0]["seq"]
    )
    for line in one:
        line.update(published=other[0]["published"], published_s=other[0]["published_s"])
    first = one[0]["seq"]
    lines[first : other[-1]["seq"] + 1] = [*other[:2], *one, *other[2:]]
    run.reorder(lines)


def groups_in_another_order(run: Run) -> None:
    lines, groups = run.in_order(), list(run.groups().values())
    one, other = groups[2], groups[7]
    rest = [line for line in lines if line not in one and line not in other]
    run.reorder([*other, *rest, *one])


def a_row_of_a_group_called_a_reuse(run: Run) -> None:
    """The last one: where groups are kept, a row could have joined then."""
    last = next(
        members[-1]
        for members in run.groups().values()
        if len({line["subject"] for line in members[:-1]}) >= K
    )
    last["outcome"] = "reuse"


def a_group_called_suppressed(run: Run) -> None:
    members = run.groups()[list(run.groups())[5]]
    run.reorder([line for line in run.in_order() if line not in members])
    for line in members:
        line.update(outcome="suppressed", group=None, loss=1.0)


def a_row_called_suppressed(run: Run) -> None:
    large = next(m for m in run.groups().values() if len({x["subject"] for x in m}) > K)
    run.reorder([line for line in run.in_order() if line is not large[0]])
    large[0].update(outcome="suppressed", group=None, loss=1.0)


def a_row_called_quarantined(run: Run) -> None:
    large = next(m for m in run.groups().values() if len({x["subject"] for x in m}) > K)
    run.reorder([line for line in run.in_order() if line is not large[0]])
    nothing = dict.fromkeys(
        ["arrived", "published", "arrived_s", "published_s", "group", "window", "loss"]
    )
    large[0].update(outcome="quarantined", **nothing)
    run.recount()


def a_false_loss(run: Run) -> None:
    run.in_order()[17]["loss"] += 0.001


def a_suppressed_row_that_loses_little(run: Run) -> None:
    line = next(line for line in run.trace if line["outcome"] == "quarantined")
    line["loss"] = 0.5


def rows_that_came_later_than_they_did(run: Run) -> None:
    """A delay in seconds would be judged by these times."""
    for line in run.trace:
        if line["arrived_s"] is not None and line["row"] > 200:
            line["arrived_s"] += 0.5


FORGERIES: list[tuple[Callable[[Run], None], str, str]] = [
    (sorted_by_subject, "order", "aren't shuffled: their order follows subject"),
    (sorted_by_the_number_of_the_subject, "order", "their order follows subject as a number"),
    (sorted_by_arrival, "order", "aren't shuffled: their order follows arrival"),
    (sorted_by_arrival_backwards, "order", "aren't shuffled: their order follows arrival"),
    (sorted_by_the_hidden_age, "order", "aren't shuffled: their order follows column age"),
    (groups_of_two_instants_interleaved, "order", "left before one that was decided earlier"),
    (groups_of_one_instant_interleaved, "order", "in 1 groups other rows stand between"),
    (groups_in_another_order, "order", "left before one that was decided earlier"),
    (a_row_of_a_group_called_a_reuse, "grouping", "1 rows are called reuses, and the job keeps no"),
    (a_group_called_suppressed, "suppression", "though enough others were held"),
    (a_row_called_suppressed, "suppression", "1 of them, though enough others were held"),
    (a_row_called_quarantined, "conservation", "1 rows are called quarantined and nothing is"),
    (a_false_loss, "loss", "1 rows have a false loss"),
    (a_suppressed_row_that_loses_little, "loss", "1 rows have a false loss"),
    (rows_that_came_later_than_they_did, "arrival", "rows have another time of arrival"),
]


def test_the_honest_run_keeps_every_promise(auditor: Auditor, run: Run) -> None:
    code, said = auditor.audit(run)
    assert code == 0, said
    assert "order follows nothing private" in said


@pytest.mark.parametrize(
    ("forge", "promise", "reported"), FORGERIES, ids=[forge.__name__ for forge, _, _ in FORGERIES]
)
def test_each_forgery_is_found_and_nothing_else(
    auditor: Auditor, run: Run, forge: Callable[[Run], None], promise: str, reported: str
) -> None:
    forge(run)
    code, said = auditor.audit(run)
    assert code == 1, said
    broken = [line.strip() for line in said.splitlines() if ": broken; " in line]
    assert [line.partition(":")[0] for line in broken] == [promise]
    assert reported in broken[0]
    assert "person-" not in said


# -- what isn't broken -----------------------------------------------------------------------------


def test_a_box_that_is_wider_than_needed_is_reported(auditor: Auditor, run: Run) -> None:
    members = next(
        m
        for m in run.groups().values()
        if all(x["group"] != m[0]["group"] for x in run.trace if x["outcome"] == "reuse")
        and run.shown(m[0])["town"] != "any"
    )
    low, high = map(float, run.shown(members[0])["age"].strip("[]").split(", "))
    for line in members:
        run.shown(line).update(age="[0, 120]", town="any")
        line["loss"] = 1.0
    code, said = auditor.audit(run)
    assert code == 0, said
    assert "groups have a wider box than their rows need" in said
    assert high - low < 120


def test_a_row_in_a_later_group_that_covers_it_is_what_another_run_could_have_published(
    auditor: Auditor, run: Run
) -> None:
    """Every promise holds for what is there: this can't be told from an honest run."""
    groups = run.groups()
    line, host = next(
        (line, later)
        for members in groups.values()
        if len({x["subject"] for x in members}) > K
        for line in members
        if sum(x["subject"] == line["subject"] for x in members) == 1
        for later in groups.values()
        if line["published"] < later[0]["published"] <= line["arrived"] + 60
        and run.covers(line, run.shown(later[0]))
    )
    lines = [x for x in run.in_order() if x is not line]
    lines.insert(lines.index(host[0]), line)
    run.reorder(lines)
    same = ("published", "published_s", "group", "loss")
    line.update({name: host[0][name] for name in same})
    run.shown(line).update({name: run.shown(host[0])[name] for name in ("age", "town")})
    assert auditor.audit(run)[0] == 0


# -- what only typed files hold --------------------------------------------------------------------

TYPED = ("parquet", "arrow")


def write_table(table: pa.Table, auditor: Auditor, **batch: dict[str, str]) -> None:
    if auditor.form == "parquet":
        pq.write_table(table, auditor.out)
        return
    with pa.ipc.new_file(auditor.out, table.schema) as sink:
        for part in table.to_batches():
            sink.write_batch(part, **batch)


def with_a_value_that_no_row_has(table: pa.Table) -> pa.Table:
    place = table.schema.names.index("illness")
    column = table.column(place).combine_chunks().dictionary_encode()
    values = pa.concat_arrays([column.dictionary, pa.array(["CANARY"])])
    return table.set_column(
        place, "illness", pa.DictionaryArray.from_arrays(column.indices, values)
    )


def with_a_label_that_no_row_has(table: pa.Table) -> pa.Table:
    place = table.schema.names.index("age")
    column = table.column(place).combine_chunks().dictionary_encode()
    values = pa.concat_arrays([column.dictionary, pa.array(["[20, 25]", "CANARY"])])
    return table.set_column(place, "age", pa.DictionaryArray.from_arrays(column.indices, values))


def with_metadata_of_a_column(table: pa.Table) -> pa.Table:
    field = table.schema.field("ward").with_metadata({"note": "CANARY"})
    return table.cast(table.schema.set(table.schema.names.index("ward"), field))


def with_metadata(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata({"note": "CANARY"})


def with_a_column_of_lists(table: pa.Table) -> pa.Table:
    return table.append_column("who", pa.array([["CANARY"]] * table.num_rows))


HIDDEN: list[tuple[Callable[[pa.Table], pa.Table], str]] = [
    (with_a_value_that_no_row_has, "columns with values that no row has: illness"),
    (with_a_label_that_no_row_has, "columns with values that no row has: age"),
    (with_metadata_of_a_column, "columns with metadata of their own: ward"),
    (with_metadata, "the file carries metadata of its own"),
    (with_a_column_of_lists, "columns that the schema doesn't publish: 1 that isn't in the schema"),
]


@pytest.mark.parametrize("auditor", TYPED, indirect=True)
@pytest.mark.parametrize(("hide", "reported"), HIDDEN, ids=[hide.__name__ for hide, _ in HIDDEN])
def test_what_a_file_hides_beside_its_rows_is_found(
    auditor: Auditor, run: Run, hide: Callable[[pa.Table], pa.Table], reported: str
) -> None:
    auditor.write(run)
    write_table(hide(pa.Table.from_pylist(run.published)), auditor)
    code, said = auditor.audit()
    assert code == 1, said
    assert f"secrecy: broken; {reported}" in said
    assert said.count(": broken; ") == 1
    assert "CANARY" not in said


@pytest.mark.parametrize("auditor", TYPED, indirect=True)
def test_dictionaries_whose_values_rows_have_hide_nothing(auditor: Auditor, run: Run) -> None:
    auditor.write(run)
    table = pa.Table.from_pylist(run.published)
    for place, name in enumerate(table.schema.names):
        table = table.set_column(place, name, table.column(place).dictionary_encode())
    write_table(table, auditor)
    assert auditor.audit()[0] == 0


def test_a_dictionary_that_only_the_pages_of_parquet_have_is_found(
    honest: tuple[Path, Run],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The file says that its column is text."""
    auditor = Auditor(honest[0], "parquet", monkeypatch, capfd)
    auditor.write(run)
    table = with_a_value_that_no_row_has(pa.Table.from_pylist(run.published))
    pq.write_table(table, auditor.out, store_schema=False)
    assert pq.read_schema(auditor.out).field("illness").type == pa.string()
    code, said = auditor.audit()
    assert code == 1
    assert "columns with values that no row has: illness" in said


def test_metadata_of_a_batch_is_found(
    honest: tuple[Path, Run],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    auditor = Auditor(honest[0], "arrow", monkeypatch, capfd)
    auditor.write(run)
    write_table(pa.Table.from_pylist(run.published), auditor, custom_metadata={"note": "CANARY"})
    code, said = auditor.audit()
    assert code == 1
    assert "the file carries metadata of its own" in said
