import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import JobError, ResourceError
from shoal.io import CsvSource
from shoal.io.streams import Input


def read(data, columns=None, **options):
    """Give the rows as (position, values), and the bad ones."""
    source = CsvSource(Input(io.BytesIO(data), "people.csv"), columns, **options)
    rows, bad = [], []
    for chunk in source:
        chunk.batch.validate(full=True)
        assert chunk.batch.num_rows == len(chunk.rows)
        values = [tuple(row.values()) for row in chunk.batch.to_pylist()]
        rows += zip(chunk.rows.tolist(), values, strict=True)
        bad += chunk.bad
    return rows, bad


def test_columns_come_in_the_order_they_were_asked_for():
    rows, bad = read(b"a,b,c\n1,2,3\n4,5,6\n", ["c", "a"])
    assert rows == [(0, ("3", "1")), (1, ("6", "4"))]
    assert bad == []


def test_nothing_is_converted_and_empty_is_null():
    rows, _ = read(b'a,b\n007,NA\n,""\n" x ",NaN\n')
    assert [values for _, values in rows] == [("007", "NA"), (None, ""), (" x ", "NaN")]


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\r\n1,2\r\n3,4\r\n",
        b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
        b"a,b\n1,2\n3,4",
        b"\n\na,b\n\n1,2\n\n\n3,4\n\n",
        b'"a","b"\n"1","2"\n"3","4"\n',
    ],
    ids=["crlf", "bom", "no last newline", "empty lines", "quoted"],
)
def test_forms_of_the_same_file(data):
    assert read(data) == ([(0, ("1", "2")), (1, ("3", "4"))], [])


def test_newlines_and_quotes_within_quotes():
    rows, _ = read(b'a,b\n"1\n2","say ""hi"""\n5" pipe,x\n')
    assert [values for _, values in rows] == [("1\n2", 'say "hi"'), ('5" pipe', "x")]


def test_nul_bytes_are_bytes():
    assert read(b"a,b\n\0,x\n") == ([(0, ("\0", "x"))], [])


def test_rows_of_the_wrong_length_are_bad_and_counted():
    rows, bad = read(b"a,b\n1,2\n3\n\n4,5,6\n7,8\n")
    assert rows == [(0, ("1", "2")), (3, ("7", "8"))]
    assert [(b.row, b.reason, b.raw) for b in bad] == [
        (1, "1 field where 2 are expected", b"3"),
        (2, "3 fields where 2 are expected", b"4,5,6"),
    ]


def test_broken_utf8_costs_its_own_row_only():
    data = "a,b\né,1\n".encode() + b"x,\xff\n\xfe\n\xff,2\n" + "ü,3\n".encode()
    rows, bad = read(data)
    assert rows == [(0, ("é", "1")), (4, ("ü", "3"))]
    assert [(b.row, b.reason, b.raw) for b in bad] == [
        (1, "broken UTF-8 in column b", b"x,\xff"),
        (2, "1 field where 2 are expected", b"\xfe"),
        (3, "broken UTF-8 in column a", b"\xff,2"),
    ]


def test_broken_utf8_in_a_column_that_nobody_wants_does_no_harm():
    assert read(b"a,b\n1,\xff\n2,x\n", ["a"]) == ([(0, ("1",)), (1, ("2",))], [])


def test_an_open_quote_is_one_bad_row():
    rows, bad = read(b'a,b\n1,2\n"3,4\n5,6\n')
    assert rows == [(0, ("1", "2")), (2, ("5", "6"))]
    assert [(b.row, b.reason, b.raw) for b in bad] == [
        (1, "a quote is opened and never closed", b'"3,4')
    ]


def test_header_only_has_columns_and_no_rows():
    source = CsvSource(Input(io.BytesIO(b"a,b\n"), "people.csv"))
    assert source.schema_names == ("a", "b")
    assert list(source) == []


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_header(data):
    with pytest.raises(ResourceError, match=r"people\.csv: can't be read: it has no header"):
        read(data)


def test_a_header_that_isnt_text_is_refused_without_showing_it():
    with pytest.raises(ResourceError, match="isn't a header in UTF-8") as caught:
        read(b"secret,\xff\n1,2\n")
    assert "secret" not in str(caught.value)


def test_two_columns_of_one_name_are_refused_by_their_places():
    with pytest.raises(ResourceError, match="columns 1 and 3 have the same name") as caught:
        read(b"secret,b,secret\n1,2,3\n", ["b"])
    assert "secret" not in str(caught.value)


def test_missing_columns_are_all_named_with_the_nearest():
    with pytest.raises(JobError) as caught:
        read(b"age,sex\n1,2\n", ["agee", "sexx", "sex"])
    assert len(caught.value.problems) == 2
    assert "column agee: isn't in the input. Did you mean 'age'?" in str(caught.value)


def test_a_file_without_a_header_doesnt_show_its_first_row():
    with pytest.raises(JobError, match="does it have a header") as caught:
        read(b"39,Jane Doe\n40,John\n", ["age", "name"])
    assert "Jane" not in str(caught.value)


def test_chunks_have_at_most_batch_rows_and_their_own_bad_rows():
    data = b"a,b\n" + b"1,2\n3\n" * 5 + b"4\n"
    source = CsvSource(Input(io.BytesIO(data), "people.csv"), batch_rows=2)
    chunks = list(source)
    assert [chunk.rows.tolist() for chunk in chunks] == [[0, 2], [4, 6], [8]]
    assert [[bad.row for bad in chunk.bad] for chunk in chunks] == [[1, 3], [5, 7], [9, 10]]
    assert repr(chunks[0]) == "Chunk(n_rows=2, n_bad=2)"


fields = st.sampled_from([b"1", b"22", b'"q,\n"', b"", b'""', b"\xff", "é".encode(), b'x"y', b'"o'])
lines = st.lists(st.lists(fields, min_size=1, max_size=3).map(b",".join), max_size=12)


@given(lines, st.integers(1, 60), st.integers(1, 4), st.integers(10, 40))
def test_positions_and_rows_dont_depend_on_chunks(table, chunk_bytes, batch_rows, limit):
    data = b"a,b\n" + b"\n".join(table)
    whole = read(data, max_row_bytes=limit)
    cut = read(data, chunk_bytes=chunk_bytes, batch_rows=batch_rows, max_row_bytes=limit)
    assert cut == whole
    places = sorted([row for row, _ in whole[0]] + [bad.row for bad in whole[1]])
    assert places == list(range(len(places)))


def test_a_quote_that_is_never_closed_says_in_which_line_it_opens():
    _, bad = read(b'a,b\n1,2\n\n3,"4\n5,6\n7,8\n')
    assert [(row.row, row.text) for row in bad] == [
        (1, "a quote is opened and never closed; it begins in line 4")
    ]


def test_a_quote_that_swallows_lines_says_so_and_where():
    _, bad = read(b'a,b\n1,2\n"3,4\n5,6\n7",8,9\n1,2\n"5\n",6,7\n')
    reason = "3 fields where 2 are expected, in a row of several lines: is a quote never closed?"
    assert [(row.row, row.reason, row.line) for row in bad] == [(1, reason, 3), (3, reason, 7)]


def test_a_header_that_has_swallowed_a_row_isnt_shown():
    with pytest.raises(JobError, match="column sex: isn't in the input") as caught:
        read(b"age,se39,secret\n50,F\n", ["age", "sex"])
    assert "secret" not in str(caught.value)
