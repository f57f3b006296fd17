import csv
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.io.streams import Input
from shoal.io.text import splitter as splitter_module
from shoal.io.text.splitter import RowSplitter, read_blocks, row_ends, structural_quotes


class Pieces(Input):
    """An input that comes in given pieces, as from a pipe."""

    def __init__(self, pieces):
        super().__init__(io.BytesIO(), "pieces")
        self._pieces = [piece for piece in pieces if piece]

    def read(self, n_bytes):
        if not self._pieces:
            return b""
        piece = self._pieces.pop(0)
        if len(piece) > n_bytes:
            self._pieces.insert(0, piece[n_bytes:])
        return piece[:n_bytes]


def cut_at(data, places):
    borders = [0, *sorted(places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(borders)]


def rows_of(pieces, delimiter=b",", max_row_bytes=1000):
    """Give (row, reason) for each row, whatever blocks they came in."""
    rows = []
    for block in read_blocks(Pieces(pieces), delimiter, max_row_bytes=max_row_bytes):
        if block.reason:
            rows.append((block.data, block.reason))
            continue
        start = 0
        for end in row_ends(block.data, delimiter).tolist():
            rows.append((block.data[start:end], None))
            start = end
    return rows


messy = st.lists(st.sampled_from([b"a", b'"', b",", b"\n", b"\r\n", b'""', b"\xc3\xa9"])).map(
    b"".join
)


@given(messy, st.data(), st.integers(1, 12))
def test_any_cut_of_the_bytes_gives_the_same_rows(data, draw, limit):
    places = draw.draw(st.lists(st.integers(0, len(data))))
    whole = rows_of([data], max_row_bytes=limit)
    assert rows_of(cut_at(data, places), max_row_bytes=limit) == whole
    assert rows_of(cut_at(data, range(len(data))), max_row_bytes=limit) == whole


@given(messy)
def test_no_byte_is_lost_where_no_row_is_too_long(data):
    assert b"".join(row for row, _ in rows_of([data])) == data


@given(st.lists(st.lists(st.text("ab,\"\n\r'", max_size=4), min_size=2, max_size=3), max_size=5))
def test_rows_are_those_of_a_csv_writer(table):
    text = io.StringIO(newline="")
    csv.writer(text).writerows(table)
    data = text.getvalue().encode()
    ends = row_ends(data, b",").tolist() if data else []
    lines = [data[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
    assert [next(csv.reader(io.StringIO(line, newline=""))) for line in lines] == table


def test_a_quote_amid_a_field_is_a_character():
    data = b'5" pipe,1\n6" pipe,2\n"a\nb",3\n'
    assert [row for row, _ in rows_of([data])] == [b'5" pipe,1\n', b'6" pipe,2\n', b'"a\nb",3\n']
    assert structural_quotes(b'"a"b"c', b",").tolist() == [0, 2]


def test_rows_are_given_before_the_next_bytes_are_read():
    cutter = iter(read_blocks(Pieces([b"a\nb\nhalf", b" a row\n"])))
    assert next(cutter).data == b"a\nb\n"
    assert next(cutter).data == b"half a row\n"


def test_an_open_quote_costs_one_line_and_not_the_rest():
    data = b'1,2\n3,"4\n' + b"5,6\n" * 100
    rows = rows_of([data], max_row_bytes=50)
    assert rows[1] == (b'3,"4\n', "a quote is opened and never closed")
    assert [row for row, reason in rows if reason is None] == [b"1,2\n", *[b"5,6\n"] * 100]


def test_an_open_quote_at_the_end_costs_one_line():
    rows = rows_of([b'1,2\n3,"4\n5,6\n7,8'])
    assert rows == [
        (b"1,2\n", None),
        (b'3,"4\n', "a quote is opened and never closed"),
        (b"5,6\n", None),
        (b"7,8", None),
    ]


def test_a_line_that_is_too_long_is_skipped_without_being_held():
    source = Pieces([b"1\n", *[b"x" * 10] * 1000, b"\n2\n"])
    blocks = list(read_blocks(source, max_row_bytes=25))
    assert [block.data for block in blocks if not block.reason] == [b"1\n", b"2\n"]
    [long] = [block for block in blocks if block.reason]
    assert long.data == b"x" * 25


def test_a_byte_order_mark_is_no_part_of_the_first_row():
    assert rows_of([b"\xef", b"\xbb", b"\xbfa\n"]) == [(b"a\n", None)]
    assert rows_of([b"\xef\xbb"]) == [(b"\xef\xbb", None)]


@pytest.mark.parametrize("pieces", [[], [b""]])
def test_nothing_gives_nothing(pieces):
    assert rows_of(pieces) == []


def test_a_block_doesnt_show_its_rows():
    [block] = read_blocks(Pieces([b"secret\n"]))
    assert "secret" not in repr(block)


def test_blocks_of_very_short_rows_are_cut_where_rows_end(monkeypatch):
    monkeypatch.setattr(splitter_module, "MAX_BLOCK_LINES", 3)
    data = b'1\n2\n"3\n\n"\n4\n5\n6\n7\n'
    splitter = RowSplitter(b",")
    blocks = splitter.feed(data) + splitter.finish()
    assert [block.data for block in blocks] == [b'1\n2\n"3\n\n"\n', b"4\n5\n6\n", b"7\n"]
    assert b"".join(block.data for block in blocks) == data
