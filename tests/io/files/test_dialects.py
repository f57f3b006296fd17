"""CSV files in other dialects are read, resumed and replayed like plain ones."""

from __future__ import annotations

import dataclasses
import gzip

import pytest

from shoal.errors import JobError
from shoal.io import Dialect, open_replayable, open_source
from shoal.io.files import text_rows

COLUMNS = ["name", "age", "height"]
GERMAN = Dialect(";", encoding="cp1252", decimal=",", null=("?", "k.A."), numbers=("height",))
PLAIN_ROWS = [("Änne", "41", "1.75"), (None, None, "1.62"), ("a;b\nc", "39", None), ("", "7", "2")]
TEXT = 'name;age;height;x\nÄnne;41;1,75;1\n?;k.A.;1,62;2\n"a;b\nc";39;"?";3\n"";7;2;4\n'


def rows_of(chunks):
    return [tuple(row[n] for n in COLUMNS) for chunk in chunks for row in chunk.batch.to_pylist()]


def read(path, dialect):
    source = open_source(path, COLUMNS, dialect=dialect)
    try:
        return list(source)
    finally:
        source.close()


def written(tmp_path, encoding, text=TEXT, name="people.csv"):
    path = tmp_path / name
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("open_it", [open_source, open_replayable])
def test_the_rows_are_those_of_the_plain_file(tmp_path, encoding, name, open_it):
    path = written(tmp_path, encoding, name=name)
    source = open_it(path, COLUMNS, dialect=dataclasses.replace(GERMAN, encoding=encoding))
    assert rows_of(source) == PLAIN_ROWS
    source.close()


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16", "utf-16-le"])
def test_a_resumed_reader_continues_and_repeats_the_same_rows(tmp_path, encoding, monkeypatch):
    monkeypatch.setattr(text_rows, "CHUNK_BYTES", 64)
    body = "".join(f"Änne {i};{i};{i},5;ü\n" for i in range(40))
    path = written(tmp_path, encoding, "name;age;height;x\n" + body)
    dialect = dataclasses.replace(GERMAN, encoding=encoding)
    source = open_replayable(path, COLUMNS, dialect=dialect)
    chunks = list(source)
    source.close()
    assert len(chunks) > 4
    assert rows_of(chunks) == [(f"Änne {i}", str(i), f"{i}.5") for i in range(40)]
    resumed = open_replayable(path, COLUMNS, dialect=dialect)
    resumed.seek(chunks[1].position)
    assert rows_of([resumed.replay(chunks[2].spans)]) == rows_of([chunks[2]])
    assert rows_of(resumed) == rows_of(chunks[3:])
    resumed.close()


def test_a_folder_has_one_dialect(tmp_path):
    written(tmp_path, "utf-16", name="a.csv")
    written(tmp_path, "utf-16-le", "\ufeff" + TEXT, name="b.csv")
    source = open_source(tmp_path, COLUMNS, dialect=dataclasses.replace(GERMAN, encoding="utf-16"))
    assert rows_of(source) == PLAIN_ROWS * 2
    source.close()


def test_a_growing_file_is_followed_in_its_dialect_if_it_is_utf_8(tmp_path):
    path = written(tmp_path, "utf-8")
    dialect = dataclasses.replace(GERMAN, encoding="utf-8")
    source = open_replayable(path, COLUMNS, dialect=dialect, follow=True, poll=0.01)
    assert rows_of([next(iter(source))]) == PLAIN_ROWS
    source.close()
    with pytest.raises(JobError, match="only uncompressed text files in UTF-8 can be followed"):
        open_replayable(path, COLUMNS, dialect=GERMAN, follow=True)


def test_bytes_without_a_meaning_make_a_bad_row_and_no_other(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"name;age;height\nA;1;1,5\n\x81;2;1,5\nC;3;1,5\n")
    [chunk] = read(path, GERMAN)
    assert rows_of([chunk]) == [("A", "1", "1.5"), ("C", "3", "1.5")]
    assert [(bad.row, bad.reason) for bad in chunk.bad] == [(1, "broken text in column name")]


@pytest.mark.parametrize("tail", [b"\xd8", b"\xd8\x00", b"\x00"])
def test_a_utf_16_file_that_is_cut_off_has_one_bad_row(tmp_path, tail):
    path = tmp_path / "people.csv"
    path.write_bytes("name;age;height\nA;1;1,5\nB;2;2".encode("utf-16-be") + tail)
    dialect = dataclasses.replace(GERMAN, encoding="utf-16-be")
    chunks = read(path, dialect)
    assert rows_of(chunks) == [("A", "1", "1.5")]
    assert [bad.row for chunk in chunks for bad in chunk.bad] == [1]


def test_a_point_in_a_number_with_a_decimal_comma_is_never_guessed(tmp_path):
    text = "name;age;height\nA;1;1.234\nB;2;1.234,5\nC;3.5;2,5\n"
    [chunk] = read(written(tmp_path, "cp1252", text), GERMAN)
    # Only columns that are read as numbers are looked at.
    assert rows_of([chunk]) == [("C", "3.5", "2.5")]
    reason = "height has a point, and the decimal sign is a comma"
    assert [(b.row, b.reason, b.raw) for b in chunk.bad] == [
        (0, reason, b"A;1;1.234"),
        (1, reason, b"B;2;1.234,5"),
    ]


def test_without_quotes_a_quote_is_a_character(tmp_path):
    path = written(tmp_path, "utf-8", 'name,age,height\n"A,1,2\n5" pipe,2,3\n')
    assert rows_of(read(path, Dialect(quote=""))) == [('"A', "1", "2"), ('5" pipe', "2", "3")]


def test_another_quote_keeps_delimiters_and_newlines(tmp_path):
    path = written(tmp_path, "utf-8", "name,age,height\n'A,\nB''s',1,\"2\n")
    assert rows_of(read(path, Dialect(quote="'"))) == [("A,\nB's", "1", '"2')]


@pytest.mark.parametrize("open_it", [open_source, open_replayable])
def test_a_wrong_delimiter_is_said_once_with_the_likely_one(tmp_path, open_it):
    path = written(tmp_path, "utf-8")
    with pytest.raises(JobError) as caught:
        open_it(path, COLUMNS)
    assert str(caught.value).splitlines() == [
        f'{path}: input.delimiter: isn\'t ",": with it none of the 3 columns of the job is in the '
        'header. The header has them with ";": set delimiter = ";" in [input].'
    ]


def test_columns_that_no_delimiter_finds_are_one_problem(tmp_path):
    path = written(tmp_path, "utf-8", "secret;b\n1;2\n")
    with pytest.raises(JobError) as caught:
        open_source(path, COLUMNS)
    assert "none of the 3 columns of the job is in the input, which has 1 column" in str(
        caught.value
    )
    assert "secret" not in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"delimiter": ";;"}, "delimiter: must be one ASCII character"),
        ({"delimiter": "§"}, "delimiter: must be one ASCII character"),
        ({"delimiter": "a"}, "delimiter: must be one ASCII character"),
        ({"delimiter": ""}, "delimiter: must be one ASCII character"),
        ({"quote": "''"}, "quote: must be one ASCII character"),
        ({"quote": ";", "delimiter": ";"}, "quote: must differ from the delimiter"),
        ({"decimal": ";"}, 'decimal: must be "." or ","'),
        ({"decimal": ",", "delimiter": ","}, "decimal: can't be the comma"),
        ({"encoding": "klingon"}, "encoding: isn't a known encoding"),
        ({"encoding": "base64"}, "encoding: isn't a known encoding"),
        ({"encoding": "a\0b"}, "encoding: isn't a known encoding"),
    ],
)
def test_a_dialect_that_cant_be_is_refused(keys, what):
    with pytest.raises(JobError) as caught:
        Dialect.of_keys(keys)
    assert what in str(caught.value)
