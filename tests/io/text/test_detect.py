"""How a CSV file is written is found out from its first bytes."""

from __future__ import annotations

import pytest

from shoal.io import detect_dialect
from shoal.io.text.detect import LOOK_BYTES, likely_dialect, likely_encoding

PEOPLE = "name{0}alter{0}größe\nÄnne{0}41{0}1,75\nBjörn{0}39{0}1,82\nCem{0}50{0}1,62\n"


@pytest.mark.parametrize("delimiter", [";", "\t", "|", "^", "~"])
def test_the_delimiter_is_the_one_that_gives_even_rows(delimiter):
    assert likely_dialect(PEOPLE.format(delimiter).encode()).delimiter == delimiter


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32"),
        ("latin-1", "cp1252"),
        ("cp1252", "cp1252"),
    ],
)
def test_the_encoding_is_found_with_and_without_a_mark(encoding, found):
    dialect = likely_dialect(PEOPLE.format(";").encode(encoding))
    assert (dialect.delimiter, dialect.encoding, dialect.decimal) == (";", found, ",")


def test_bytes_without_a_meaning_on_windows_are_latin_1():
    assert likely_encoding(b"a\x81b\xe9") == "latin-1"


def test_a_character_cut_off_at_the_end_is_still_utf_8():
    assert likely_encoding("größe".encode()[:3]) == "utf-8"


def test_delimiters_inside_quotes_dont_count():
    text = 'name;note\nA;"x, y, z"\nB;"u, v, w"\nC;"q, r, s"\n'
    assert likely_dialect(text.encode()).delimiter == ";"
    text = "name,note\nA,'x, y'\nB,'z'\nC,'u, v, w'\n"
    assert likely_dialect(text.encode()).quote == "'"


def test_an_apostrophe_in_a_name_is_no_quote():
    text = "name,age\n'Abd,30\nO'Hara,41\nD'Arcy,39\n"
    assert likely_dialect(text.encode()).quote == '"'


def test_plain_csv_has_no_keys_to_write(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n39,M\n50,F\n")
    assert detect_dialect(path).as_keys() == {}
    (tmp_path / "people.tsv").write_text("age\tsex\n39\tM\n")
    assert detect_dialect(tmp_path / "people.tsv").as_keys() == {}
    (tmp_path / "other.tsv").write_text("age;sex\n39;M\n")
    assert detect_dialect(tmp_path / "other.tsv").as_keys() == {"delimiter": ";"}


def test_a_comma_between_digits_of_a_text_is_no_decimal_sign():
    text = "id;codes\n1;3,4\n2;a,b\n3;5\n"
    assert likely_dialect(text.encode()).decimal == "."
    assert likely_dialect(b"id;n\n1;1,5\n2;1.5\n").decimal == "."


def test_markers_of_missing_values_are_told_from_categories():
    text = "country;age;job\nNA;41;?\nDE;NA;clerk\nFR;39;None\n"
    assert set(likely_dialect(text.encode()).null) == {"?", "NA"}
    text = "country;job\nNA;None\nDE;clerk\n"
    assert likely_dialect(text.encode()).null == ()


def test_only_the_beginning_of_a_large_file_is_read(tmp_path):
    path = tmp_path / "people.csv"
    row = b"41;1,75\n"
    path.write_bytes(b"age;height\n" + row * (LOOK_BYTES // len(row)) + b"\xff\xff")
    assert detect_dialect(path).as_keys() == {"delimiter": ";", "decimal": ","}


def test_a_folder_is_judged_by_its_first_file_and_other_formats_have_no_dialect(tmp_path):
    (tmp_path / "a.csv").write_text("age;sex\n39;M\n")
    (tmp_path / "b.csv").write_text("age,sex\n39,M\n")
    assert detect_dialect(tmp_path).delimiter == ";"
    (tmp_path / "c.jsonl").write_text('{"age": 39}\n')
    assert detect_dialect(tmp_path / "c.jsonl") is None


@pytest.mark.parametrize("data", [b"", b"\n", b"\xff\xfe", b"age\n", b'"', b"\0" * 100])
def test_hardly_any_bytes_are_plain_csv(data):
    assert likely_dialect(data).delimiter == ","


def column(name: str, *texts: str, cell: str = "{0}") -> list[str]:
    return [name, *texts, *(cell.format(n) for n in range(10, 100 - len(texts)))]


def table_of(*columns: list[str]) -> bytes:
    return "\n".join(map(";".join, zip(*columns, strict=True))).encode()


def test_markers_of_other_languages_are_known():
    text = "ort;alter;tag\nk.A.;41;01.02.2020\nUlm;Unbekannt;03.04.2020\nBonn;39;-\n"
    assert set(likely_dialect(text.encode()).null) == {"k.A.", "Unbekannt", "-"}
    # Without a column of numbers or dates these may be categories.
    text = "ort;job\nUnbekannt;brak\nUlm;-\nBonn;inconnu\n"
    assert likely_dialect(text.encode()).null == ()


@pytest.mark.parametrize("cell", ["{0}", "01.02.19{0}", "2020-01-{0} 10:{0}", "010{0}"])
def test_short_texts_that_repeat_beside_numbers_or_dates_are_markers(cell):
    marked = column("a", "ej", "ej", "??", "??", "-", cell=cell)
    names = column("b", "ej", "Ulm", "Ulm", "Bonn", "Bonn", cell="street {0}")
    assert likely_dialect(table_of(marked, names)).null == ("ej", "??", "-")


@pytest.mark.parametrize(
    "texts",
    [
        ("ej",),
        ("90+", "90+"),
        ("A", "A", "B", "B", "C", "C"),
        ("a rather long remark of someone",) * 2,
        ("never",) * 30,
    ],
    ids=["once", "digits", "many", "long", "frequent"],
)
def test_other_texts_beside_numbers_are_values(texts):
    assert likely_dialect(table_of(column("a", *texts), column("b"))).null == ()


def test_a_frequent_category_is_no_marker_elsewhere():
    sexes = ["sex", *["M", "F"] * 45]
    assert likely_dialect(table_of(column("a", "M", "M"), sexes)).null == ()
