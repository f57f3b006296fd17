"""What a column means is told by its values, and by its name where values don't tell."""

from __future__ import annotations

import random
import uuid

import pyarrow as pa
import pytest

from shoal.cli.init.columns import describe
from shoal.cli.init.meaning import Meaning, meaning_of
from shoal.cli.init.patterns import find_pattern

N = 600


def sense_of(name: str, values: list[object]) -> Meaning:
    return meaning_of(describe(name, pa.chunked_array([values])))


def draws(seed: int = 1) -> random.Random:
    return random.Random(seed)


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["ann@example.org", "bob.b@mail.example.com"], "e-mail addresses"),
        (["+49 151 2345678", "+43 664 1234567"], "phone numbers"),
        (["0151/2345678", "030 1234567"], "phone numbers"),
        (["555-123-4567", "(555) 123-4568"], "phone numbers"),
        (["DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19"], "IBANs"),
        (["078-05-1120", "219-09-9999"], "national ids"),
        (["756.9217.0769.85", "756.1234.5678.97"], "national ids"),
        ([str(uuid.UUID(int=7)), str(uuid.UUID(int=2**100))], "UUIDs"),
        (["9f86d081884c7d65", "60303ae22b998861"], "hashes"),
        (["10.0.0.1", "192.168.7.20"], "IP addresses"),
        (["2001:db8::1", "fe80::2"], "IP addresses"),
        (["00:1b:44:11:3a:b7", "00:1b:44:11:3a:b8"], "MAC addresses"),
        (["4539148803436467", "4716258050958645"], "numbers of cards or devices"),
        (["https://example.org/ann", "https://example.org/bob"], "web addresses"),
    ],
)
def test_identifiers_are_known_by_their_form(values: list[str], form: str) -> None:
    assert find_pattern(values) == form
    assert sense_of("x", values * 30).sense == "contact"


@pytest.mark.parametrize(
    "values",
    [
        ["10115", "20095"],
        ["2024-01-01", "2024-02-01"],
        ["A12", "B7"],
        ["3.5", "2.5"],
        ["yes", "no"],
    ],
)
def test_other_values_have_no_such_form(values: list[str]) -> None:
    assert find_pattern(values) is None


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("each", [2, 5, 12])
def test_numbers_that_recur_evenly_are_ids_of_people(each: int, as_text: bool) -> None:
    draw = draws(each)
    for ids in (range(1, N // each * 5), [draw.randrange(10**8) for _ in range(N)]):
        people = [*ids][: max(N // each, 100)]
        values = [str(v) if as_text else v for v in draw.choices(people, k=each * len(people))]
        found = sense_of("x", values)
        assert found.sense == "person id", found
        assert "values, each in" in found.reason


def test_text_ids_and_names_recur_as_people_do() -> None:
    draw = draws()
    codes = [f"K-{draw.randrange(10**4):04d}" for _ in range(150)]
    assert sense_of("x", draw.choices(codes, k=N)).sense == "person id"
    names = [
        f"{a}{b} {c}" for a in "ABCDEFG" for b in ("an", "el", "io") for c in ("Ng", "Roy", "Li")
    ]
    names = [f"{name}{suffix}" for name in names for suffix in ("", "s", "t")]
    assert sense_of("x", draw.choices(names, k=N)).sense in ("person id", "free text")


def test_a_different_number_in_every_row_identifies_rows() -> None:
    values = [5_000_000 + 3 * i for i in range(N)]
    assert sense_of("x", values).sense == "record id"
    assert sense_of("patient_id", values).sense == "person id"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("age", [18 + i % 70 for i in range(N)]),
        ("postcode", [10_000 + 7 * (i % 150) for i in range(N)]),
        ("salary", [31_000 + 17 * (i % 300) for i in range(N)]),
        ("year_of_birth", [1940 + i % 70 for i in range(N)]),
        ("city", [f"town {i % 150}" for i in range(N)]),
        ("x", [int(random.Random(i).gauss(120, 15)) for i in range(N)]),
        ("x", [round(random.Random(i).lognormvariate(5, 1), -1) for i in range(N)]),
    ],
)
def test_what_people_share_is_no_id(name: str, values: list[object]) -> None:
    assert not sense_of(name, values).identifies


@pytest.mark.parametrize(
    ("name", "values", "sense"),
    [
        ("admission_type_id", [1, 1, 1, 2, 3, 5, 8, 8], "code"),
        ("x", [101, 205, 205, 999, 101, 640], "code"),
        ("Aufnahmeart", [1, 1, 1, 2, 3, 6, 8], "code"),
        ("x", [80, 82, 84, 84, 86, 86, 86, 88, 90], "count"),
        ("num_medications", [1, 2, 3, 3, 4, 5, 5, 6], "count"),
        ("x", [0, 0, 0, 0, 1, 1, 2, 3], "count"),
        ("x", [0.5, 1.5, 2.25, 7.0], "measurement"),
        ("x", ["[0-10)", "[10-20)", "[20-30)", "?"], "band"),
        ("x", ["2024-01-31", "2024-02-01"], "date"),
        ("x", ["31.01.2024", "01.02.2024"], "date"),
        ("x", ["2024-01-31 10:00:00", "2024-02-01T11:30"], "time"),
        ("x", ["01/31/2024 10:00", "02/01/2024 11:30"], "time"),
        ("ts", [1_700_000_000 + i for i in range(100)], "time"),
        ("town", ["Bonn", "Ulm"], "place"),
        ("lat", [52.1, 52.2], "place"),
        ("x", ["red", "blue"], "category"),
        ("x", ["E11.9", "I10", "J45.0", "M54.5", "K21.9", "F32.1", "N39.0", "R07.4"], "diagnosis"),
        ("x", [None], "nothing"),
        ("x", [7], "nothing"),
    ],
)
def test_kinds_are_told_apart(name: str, values: list[object], sense: str) -> None:
    found = sense_of(name, values * 40)
    assert found.sense == sense, found
    assert found.reason


def test_long_texts_are_free_text() -> None:
    draw = draws()
    words = ["seen", "by", "the", "doctor", "again", "after", "lunch", "no", "change"]
    values = [" ".join(draw.choices(words, k=8)) for _ in range(N)]
    assert sense_of("x", values).sense == "free text"


def test_a_guest_who_comes_often_does_not_hide_the_ids_of_others() -> None:
    draw = draws()
    ids = [draw.randrange(10**6) for _ in range(200)]
    assert sense_of("x", [*draw.choices(ids, k=N), *[ids[0]] * 40]).sense == "person id"
