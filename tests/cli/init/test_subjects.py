"""The subject is the id of a person: not that of a visit, a household, a doctor or a product."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from shoal.cli.init.columns import describe
from shoal.cli.init.roles import Roles, assign
from shoal.cli.init.subjects import constant_share, is_personal


def roles_of(columns: dict[str, list[object]]) -> Roles:
    table = pa.table(columns)
    return assign([describe(name, table[name]) for name in table.column_names], table)


def visits(n: int = 600, seed: int = 1) -> dict[str, list[object]]:
    """Rows of people in households, who see doctors; nothing has a telling name."""
    draw = random.Random(seed)
    people = [
        (100_000 + 37 * i, 5000 + i // 3, draw.choice("fm"), 1940 + draw.randrange(60))
        for i in range(200)
    ]
    chosen = [draw.choice(people) for _ in range(n)]
    return {
        "a": [7_000_000 + i for i in range(n)],
        "b": [person[0] for person in chosen],
        "c": [person[1] for person in chosen],
        "d": [f"D{draw.randrange(60):03d}" for _ in range(n)],
        "sex": [person[2] for person in chosen],
        "birth_year": [person[3] for person in chosen],
    }


def test_the_id_with_which_nothing_of_a_person_changes_is_the_subject() -> None:
    roles = roles_of(visits())
    assert roles.subject is not None
    assert roles.subject.name == "b"
    assert 'always with the same "sex", "birth_year"' in roles.subject_reason
    assert {column.name for column in roles.quasi} == {"sex", "birth_year"}
    assert {"a", "c", "d"} <= set(roles.left_out)


@pytest.mark.parametrize(
    ("names", "subject"),
    [
        ({"a": "encounter_id", "b": "patient_id"}, "patient_id"),
        ({"a": "order_no", "b": "buyer_ref"}, "buyer_ref"),
        ({"b": "member_id", "c": "household_id"}, "member_id"),
        ({"b": "msisdn", "d": "cell_id"}, "msisdn"),
    ],
)
def test_names_help(names: dict[str, str], subject: str) -> None:
    renamed = {names.get(name, name): column for name, column in visits().items()}
    roles = roles_of(renamed)
    assert roles.subject is not None
    assert roles.subject.name == subject


def test_visits_of_several_rows_promise_more_than_rows() -> None:
    rows = visits()
    n = len(rows["a"])
    roles = roles_of({"visit_id": [9_000_000 + i // 3 for i in range(n)], "sex": rows["sex"]})
    assert roles.subject is not None
    assert roles.subject.name == "visit_id"


@pytest.mark.parametrize("name", ["login", "username", "full_name", "name", "plate", "mobile"])
def test_people_who_return_under_a_name_are_counted_by_it(name: str) -> None:
    rows = visits()
    logins = {person: f"{chr(97 + person % 26)}{person % 911}" for person in rows["b"]}  # type: ignore[operator]
    shown = {name: [logins[person] for person in rows["b"]]}
    roles = roles_of(shown | {"sex": rows["sex"], "birth_year": rows["birth_year"]})
    assert roles.subject is not None
    assert roles.subject.name == name
    roles = roles_of(shown | {"patient_id": rows["b"], "sex": rows["sex"]})
    assert roles.subject is not None
    assert roles.subject.name == "patient_id"
    assert name in roles.left_out


def test_a_name_that_many_people_share_is_no_subject() -> None:
    rows, draw = visits(), random.Random(2)
    names = {sex: [f"{sex}{i}" for i in range(60)] for sex in "fm"}
    first = [draw.choice(names[str(sex)]) for sex in rows["sex"]]
    people = {"first_name": first, "sex": rows["sex"], "birth_year": rows["birth_year"]}
    roles = roles_of(people)
    assert roles.subject is None
    assert "first_name" in roles.left_out


def test_a_column_that_belongs_to_one_person_each_is_not_published() -> None:
    rows = visits()
    badges = {
        person: f"{chr(97 + i % 26)}{chr(97 + i // 26)}" for i, person in enumerate(set(rows["b"]))
    }
    rows["badge"] = [badges[person] for person in rows["b"]]
    table = pa.table(rows)
    assert is_personal(describe("badge", table["badge"]), table["badge"], table["b"])
    assert "badge" in roles_of(rows).left_out


def test_constant_share() -> None:
    ids = pa.chunked_array([[1, 1, 2, 2, 3, None]])
    assert constant_share(ids, pa.chunked_array([list("ffmmxx")])) == 1.0
    assert constant_share(ids, pa.chunked_array([["f", None, "m", "m", "x", "x"]])) == 1.0
    assert constant_share(pa.chunked_array([[1, 2]]), pa.chunked_array([["f", "m"]])) is None


def test_ids_of_a_few_people_with_many_rows_are_no_codes() -> None:
    draw = random.Random(3)
    people = {f"u{i:02d}": (draw.choice("fm"), 1950 + 3 * i) for i in range(18)}
    chosen = [draw.choice([*people]) for _ in range(4000)]
    roles = roles_of(
        {
            "tag": chosen,
            "sex": [people[person][0] for person in chosen],
            "birth_year": [people[person][1] for person in chosen],
            "page": [draw.choice("abcdefghijklmno") for _ in chosen],
        }
    )
    assert roles.subject is not None
    assert roles.subject.name == "tag"
    assert "page" in {column.name for column in (*roles.quasi, *roles.rest)}


@pytest.mark.parametrize("n", [60, 100, 200])
@pytest.mark.parametrize("as_text", [False, True])
def test_ids_of_a_small_sample_are_known_too(n: int, as_text: bool) -> None:
    draw = random.Random(n)
    ids = [draw.randrange(10_000, 99_999) for _ in range(n // 3)]
    chosen = [draw.choice(ids) for _ in range(n)]
    roles = roles_of(
        {
            "x": [f"N{number}" if as_text else number for number in chosen],
            "age": [draw.randrange(18, 80) for _ in range(n)],
        }
    )
    assert roles.subject is not None
    assert roles.subject.name == "x"


def test_a_guest_account_is_no_reason_to_publish_the_others() -> None:
    draw = random.Random(5)
    ids = [draw.randrange(10_000, 10**6) for _ in range(120)]
    chosen = [draw.choice(ids) if draw.random() < 0.7 else 0 for _ in range(800)]
    roles = roles_of({"x": chosen, "age": [draw.randrange(18, 80) for _ in chosen]})
    assert roles.subject is not None
    assert roles.subject.name == "x"


ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
STYLES = {
    "serial numbers": lambda draw, n: list(range(1, n + 1)),
    "large numbers": lambda draw, n: draw.sample(range(10**8, 10**9), n),
    "numbers with gaps": lambda draw, n: [float(i) for i in draw.sample(range(10**4, 10**5), n)],
    "padded": lambda draw, n: [f"{i:06d}" for i in draw.sample(range(10**6), n)],
    "hexadecimal": lambda draw, n: [f"{draw.getrandbits(32):08x}" for _ in range(n)],
    "tokens": lambda draw, n: ["".join(draw.choices(ALPHABET, k=11)) for _ in range(n)],
    "nicknames": lambda draw, n: [
        "".join(draw.choices(ALPHABET[:26], k=draw.randrange(4, 9))) for _ in range(n)
    ],
    "names": lambda draw, n: [
        f"{draw.choice(['Ann', 'Bob'])} {''.join(draw.choices(ALPHABET[:26], k=6)).title()}"
        for _ in range(n)
    ],
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("skew", [0, 0.7])
@pytest.mark.parametrize(("n_people", "n_rows"), [(30, 150), (60, 3000), (600, 3000)])
def test_no_id_is_proposed_however_it_is_written(
    style: str, skew: float, n_people: int, n_rows: int
) -> None:
    draw = random.Random(n_people + n_rows)
    ids = STYLES[style](draw, n_people)
    weights = [1 / (i + 1) ** skew for i in range(n_people)]
    chosen = draw.choices(range(n_people), weights, k=n_rows)
    people = [(draw.choice("fm"), draw.randrange(1940, 2010)) for _ in ids]
    events = {
        "x": [ids[i] for i in chosen],
        "page": [draw.choice("abc") for _ in chosen],
        "amount": [round(draw.lognormvariate(3, 1), 2) for _ in chosen],
    }
    attributes = {"sex": [people[i][0] for i in chosen], "yob": [people[i][1] for i in chosen]}
    for columns in (events, events | attributes):
        roles = roles_of(columns)
        published = (*roles.quasi, *roles.sensitive, *roles.keep)
        assert "x" not in {column.name for column in published}, roles.meanings["x"]
